"""Fast Geometric Projections for VNN-COMP: decide whether a network can break a property."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fgp_vnn.api.certify import Certifier as Certifier
    from fgp_vnn.api.certify import certify as certify
    from fgp_vnn.api.models import load_model as load_model
    from fgp_vnn.api.monotone import Monotonicity as Monotonicity
    from fgp_vnn.api.monotone import monotonicity as monotonicity
    from fgp_vnn.api.properties import output_range as output_range
    from fgp_vnn.api.properties import property_of as property_of
    from fgp_vnn.api.properties import robustness as robustness
    from fgp_vnn.api.properties import variables as variables
    from fgp_vnn.api.radius import radius as radius
    from fgp_vnn.api.sets import Ball as Ball
    from fgp_vnn.api.values import bounds as bounds
    from fgp_vnn.api.values import maximise as maximise
    from fgp_vnn.api.verify import verify as verify
    from fgp_vnn.base.errors import InputError as InputError
    from fgp_vnn.base.errors import UnsupportedError as UnsupportedError
    from fgp_vnn.base.radius import Radius as Radius
    from fgp_vnn.base.ranges import Bounds as Bounds
    from fgp_vnn.base.ranges import Maximum as Maximum
    from fgp_vnn.base.results import Results as Results
    from fgp_vnn.base.robustness import Robustness as Robustness
    from fgp_vnn.base.verdict import Verdict as Verdict
    from fgp_vnn.network import load_network as load_network
    from fgp_vnn.property import Property as Property
    from fgp_vnn.property import load_property as load_property
    from fgp_vnn.property.conditions import any_of as any_of
    from fgp_vnn.property.write import write_property as write_property

__version__ = "0.1.0"

# Public names and where they live: torch is imported only when one that needs it is used.
_HOMES = {
    "Ball": "fgp_vnn.api.sets",
    "Bounds": "fgp_vnn.base.ranges",
    "Certifier": "fgp_vnn.api.certify",
    "InputError": "fgp_vnn.base.errors",
    "Maximum": "fgp_vnn.base.ranges",
    "Monotonicity": "fgp_vnn.api.monotone",
    "Property": "fgp_vnn.property",
    "Radius": "fgp_vnn.base.radius",
    "Results": "fgp_vnn.base.results",
    "Robustness": "fgp_vnn.base.robustness",
    "UnsupportedError": "fgp_vnn.base.errors",
    "Verdict": "fgp_vnn.base.verdict",
    "any_of": "fgp_vnn.property.conditions",
    "bounds": "fgp_vnn.api.values",
    "certify": "fgp_vnn.api.certify",
    "load_model": "fgp_vnn.api.models",
    "load_network": "fgp_vnn.network",
    "load_property": "fgp_vnn.property",
    "maximise": "fgp_vnn.api.values",
    "monotonicity": "fgp_vnn.api.monotone",
    "output_range": "fgp_vnn.api.properties",
    "property_of": "fgp_vnn.api.properties",
    "radius": "fgp_vnn.api.radius",
    "robustness": "fgp_vnn.api.properties",
    "variables": "fgp_vnn.api.properties",
    "verify": "fgp_vnn.api.verify",
    "write_property": "fgp_vnn.property.write",
}

__all__ = tuple(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fgp_vnn' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What a shell or a notebook offers to complete."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


class _Package(ModuleType):
    """The package, in which a public function stands before a room of the same name: importing
    `fgp_vnn.bounds.backward` leaves `fgp_vnn.bounds` the function that it is."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
