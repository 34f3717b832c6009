"""Fast Geometric Projections for VNN-COMP: decide whether a network can break a property."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# Public names and the modules that define them, read from the type stub. A module is imported when
# one of its names is first used, so that torch is loaded only when needed.
_LIST = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", _LIST, re.M)}

__all__ = tuple(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fgp_vnn' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Names that a shell or a notebook offers for completion."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


class _Package(ModuleType):
    """The package, where a public function takes precedence over a subpackage of the same name:
    after importing `fgp_vnn.bounds.backward`, `fgp_vnn.bounds` is still the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
