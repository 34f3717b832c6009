"""Split rules, found by the name of their file."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from fgp_vnn.base.errors import InputError


@cache
def names_of(folder: ModuleType) -> tuple[str, ...]:
    """The names of the rules in a package."""
    return tuple(sorted(module.name for module in iter_modules(folder.__path__)))


@cache
def find_rule(folder: ModuleType, name: str) -> Any:
    """The `RULE` of the file with this name in a package of rules."""
    if name not in names_of(folder):
        known = ", ".join(names_of(folder))
        raise InputError(f"there is no split rule {name!r}; it must be one of {known}")
    return import_module(f"{folder.__name__}.{name}").RULE
