"""Write docs/reference/commands.md: every command with its options, as the parser has them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from fgp_vnn.cli.main import COMMANDS

PAGE = Path(__file__).parent / "reference" / "commands.md"
HEAD = """# Commands

Written by `python docs/commands.py` from the program itself. Every command has `--help` too. Exit
codes are the same for all: 0 for every verdict, 1 where a check failed (a wrong verdict, a refused
certificate), 2 with one line of explanation for bad input and for what cannot be written, 130 after
Ctrl-C, 141 if nobody reads the output any longer.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for name, summary in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"fgp-vnn {name}", add_help=False)
        import_module(f"fgp_vnn.cli.{name.replace('-', '_')}").add_arguments(parser)
        rows = "\n".join(_rows(parser))
        sentence = summary[0].upper() + summary[1:]
        parts.append(
            f"## fgp-vnn {name}\n\n{sentence}.\n\n| argument | meaning |\n|---|---|\n{rows}\n"
        )
    return "\n".join(parts)


def _rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        name = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{action.dest}`"
        if values := _values(action):
            name += f" `{values}`"
        words = (action.help or "") % {"default": action.default}
        notes = [words] if words else []
        if action.required and action.option_strings:
            notes.append("required")
        yield f"| {name} | {'; '.join(notes).replace('|', '&#124;')} |"


def _values(action: argparse.Action) -> str:
    """Return what follows an option on the command line."""
    if not action.option_strings or action.nargs == 0:
        return ""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar:
        return action.metavar
    if action.choices:
        return "/".join(map(str, action.choices))
    return action.dest.upper()


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
