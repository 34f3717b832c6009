"""The command line: one module of `fgp_vnn.cli` per command, loaded when it is used."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NoReturn

from fgp_vnn import __version__
from fgp_vnn.base.deferred import defer_modules
from fgp_vnn.base.errors import InputError, UnusedSettingError, memory_errors
from fgp_vnn.base.words import either, suggestion
from fgp_vnn.cli.interrupt import EXIT_CODE, MESSAGE
from fgp_vnn.cli.output import NOBODY_READS, complain, describe_os_error, reader_has_gone

# Each command is a module with add_arguments(parser) and run(args) -> exit code.
COMMANDS = {
    "demo": "verify the bundled benchmark and compare every verdict with the ground truth",
    "verify": "decide one VNN-LIB property of one ONNX network, or of several",
    "certify": "decide whether a classifier is robust around each point of a file",
    "radius": "bound the distance from each point of a file to the nearest input of another class",
    "bounds": "certify ranges of outputs or hidden neurons, or the maximum of an objective",
    "property": "write a folder of properties of a network: robustness at points, or monotonicity",
    "supports": "say whether a property of a network can be verified "
    "(see 'networks' for networks without a property)",
    "networks": "list the sizes of networks, or why they cannot be read "
    "(see 'supports' for a network with a property)",
    "bench": "verify all instances of a folder; the same command resumes an interrupted run",
    "compare": "run several tools on the same instances, and check their counterexamples",
    "report": "write an HTML page about a run or a comparison",
    "check": "check the counterexample in a results file with onnxruntime",
    "check-certificate": "check the proof of an unsat, independently of the verifier",
    "completion": "print a script that lets a shell complete commands and options",
}
_SWITCHED_OFF = ("attack", "alternate")  # settings with an option --no-NAME


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Return 0 for every verdict, 2 for bad input or an unwritable output, 130 for
    Ctrl-C, and 141 if the reader of the output has closed it."""
    if argv is None:
        _prepare_output()
        defer_modules()
    try:
        try:
            args = _parse(argv)
            with memory_errors():
                return int(_module(args.command).run(args))
        finally:  # also after --help
            sys.stdout.flush()
    except UnusedSettingError as error:
        complain(_about_unused(error, args))
    except InputError as error:
        complain(str(error))
    except KeyboardInterrupt:
        complain(MESSAGE)
        return EXIT_CODE
    except BrokenPipeError:
        if not reader_has_gone():
            raise
        return NOBODY_READS
    except OSError as error:
        complain(describe_os_error(error))
    return 2


def _about_unused(error: UnusedSettingError, args: argparse.Namespace) -> str:
    """The message about a setting without effect, in terms of the options that were given."""
    given, other = _option(error.setting, args), _option(error.other, args)
    if isinstance(error.values[0], bool):
        return f"{given} has no effect with {other}"
    return f"{given} is used only by {other} {either(map(str, error.values))}"


def _option(setting: str, args: argparse.Namespace) -> str:
    """Return the option that changes a setting, as it was typed."""
    if setting in getattr(args, "without", ()):
        return f"--without {setting}"
    return f"--{'no-' if setting in _SWITCHED_OFF else ''}{setting.replace('_', '-')}"


def _prepare_output() -> None:
    """Discard the output if it is closed, and make any file name printable."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors as an InputError of one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write the message; unlike argparse's own method, do not ignore write errors."""
        (file or sys.stderr).write(message)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; only the modules of commands named in it are loaded."""
    asked = list(sys.argv[1:] if argv is None else argv)
    parser = whole_parser([name for name in COMMANDS if name in asked])
    own = argv is None  # False: called as a function by another program
    parser.set_defaults(own_process=own, command_line=["fgp-vnn", *asked])
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        from fgp_vnn.cli.completion import options_of

        # Compare without the dashes, which make all options look similar, and only with options
        # that begin with the same letter: --out is no misspelt --timeout.
        name = unknown[0].partition("=")[0].lstrip("-")
        known = [o[2:] for o in options_of(parser)[args.command] if o.startswith(f"--{name[:1]}")]
        hint = suggestion(name, known)
        hint = hint.replace("mean '", "mean '--")
        which = f"unrecognized arguments: {' '.join(unknown)}{hint}"
        raise InputError(f"{which} (see fgp-vnn {args.command} --help)")
    return args


def whole_parser(full: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser of all commands; only the commands in `full` get their options."""
    parser = _Parser(
        prog="fgp-vnn",
        description="Verify neural networks by Fast Geometric Projections.",
        epilog="fgp-vnn COMMAND --help describes a command and its options.",
    )
    parser.add_argument("--version", action="version", version=f"fgp-vnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name in full:
            module = _module(name)
            module.add_arguments(command)
            command.epilog = f"example: {module.EXAMPLE}"
    return parser


def _module(command: str) -> Any:
    return import_module(f"fgp_vnn.cli.{command.replace('-', '_')}")


if __name__ == "__main__":
    sys.exit(main())
