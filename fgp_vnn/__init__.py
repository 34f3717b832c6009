"""Fast Geometric Projections for VNN-COMP: decide whether a network can break a property."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fgp_vnn.api.certify import Certifier as Certifier
    from fgp_vnn.api.certify import certify as certify
    from fgp_vnn.api.models import load_model as load_model
    from fgp_vnn.api.radius import radius as radius
    from fgp_vnn.api.verify import verify as verify
    from fgp_vnn.base.errors import InputError as InputError
    from fgp_vnn.base.errors import UnsupportedError as UnsupportedError
    from fgp_vnn.base.radius import Radius as Radius
    from fgp_vnn.base.robustness import Robustness as Robustness
    from fgp_vnn.base.verdict import Verdict as Verdict
    from fgp_vnn.network import load_network as load_network
    from fgp_vnn.property import load_property as load_property

__version__ = "0.1.0"

# Public names and where they live: torch is imported only when one that needs it is used.
_HOMES = {
    "Certifier": "fgp_vnn.api.certify",
    "Radius": "fgp_vnn.base.radius",
    "radius": "fgp_vnn.api.radius",
    "Robustness": "fgp_vnn.base.robustness",
    "certify": "fgp_vnn.api.certify",
    "verify": "fgp_vnn.api.verify",
    "InputError": "fgp_vnn.base.errors",
    "UnsupportedError": "fgp_vnn.base.errors",
    "load_model": "fgp_vnn.api.models",
    "load_network": "fgp_vnn.network",
    "load_property": "fgp_vnn.property",
    "Verdict": "fgp_vnn.base.verdict",
}

__all__ = [
    "Certifier",
    "InputError",
    "Radius",
    "Robustness",
    "UnsupportedError",
    "Verdict",
    "certify",
    "load_model",
    "load_network",
    "load_property",
    "radius",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fgp_vnn' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
