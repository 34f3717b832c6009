"""Third-party packages of the extra `report`, imported when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fgp_vnn.base.errors import InputError

_NEEDED = ("jinja2", "matplotlib.figure")


def library(module: str) -> Any:
    """Import a module; if it is missing, raise InputError with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        message = f"reports need {name}, which is not installed: pip install 'fgp-vnn[report]'"
        raise InputError(message) from error


def check_libraries() -> None:
    """Raise InputError, before any work is done, if a report could not be written."""
    for module in _NEEDED:
        library(module)
