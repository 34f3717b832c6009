"""Messages about options that another option leaves without effect, in the words of the user."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from fgp_vnn.base.errors import InputError, UnusedSettingError
from fgp_vnn.base.words import either

_SWITCHED_OFF = ("attack", "alternate")  # settings with an option --no-NAME


@contextmanager
def naming_unused(args: argparse.Namespace) -> Iterator[None]:
    """Let an error about an unused setting name the options that were given."""
    try:
        yield
    except UnusedSettingError as error:
        raise InputError(_message(error, args)) from error


def _message(error: UnusedSettingError, args: argparse.Namespace) -> str:
    given, other = _option(error.setting, args), _option(error.other, args)
    if isinstance(error.values[0], bool):
        return f"{given} has no effect with {other}"
    return f"{given} is used only by {other} {either(map(str, error.values))}"


def _option(setting: str, args: argparse.Namespace) -> str:
    """Return the option that changes a setting, as it was typed."""
    if setting in getattr(args, "without", ()):
        return f"--without {setting}"
    return f"--{'no-' if setting in _SWITCHED_OFF else ''}{setting.replace('_', '-')}"
