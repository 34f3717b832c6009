"""The command line: one module of `fgp_vnn.commands` per command, loaded when it is asked for."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fgp_vnn import __version__
from fgp_vnn.commands.interrupt import EXIT_CODE, MESSAGE
from fgp_vnn.errors import InputError

# Each command is a module with add_arguments(parser) and run(args) -> exit code.
COMMANDS = {
    "verify": "decide one VNN-LIB property of one ONNX network",
    "certify": "decide local robustness at the points of a file",
    "radius": "bound the distance to the nearest input of another class",
    "supports": "say whether a network and a property can be read, without analysing them",
    "networks": "list the networks of folders with their sizes, or why they cannot be read",
    "bench": "run a folder of instances, and resume it where it was left",
    "compare": "run several tools on the same instances, and check their counterexamples",
    "report": "make one HTML page of a run or a comparison",
    "check": "check the counterexample of a results file with onnxruntime",
    "check-certificate": "check the proof of an unsat, apart from the verifier",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 for every verdict, 2 for bad input, 130 for Ctrl-C, 141 if nobody reads
    any longer what it prints."""
    args = _parser(argv).parse_args(argv)
    try:
        code = int(_module(args.command).run(args))
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"fgp-vnn: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(MESSAGE, file=sys.stderr)
        return EXIT_CODE
    except BrokenPipeError:
        if not _reader_has_gone():
            raise
        return 141


def _reader_has_gone() -> bool:
    """Whether standard output is closed at its other end, as `head` does; the rest goes nowhere."""
    output = sys.stdout.fileno()
    poll = select.poll()
    poll.register(output, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True


def _parser(argv: Sequence[str] | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fgp-vnn", description="Verify neural networks by Fast Geometric Projections."
    )
    parser.set_defaults(own_process=argv is None)  # or a call from somebody else's
    parser.add_argument("--version", action="version", version=f"fgp-vnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    asked = list(sys.argv[1:] if argv is None else argv)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name in asked:
            _module(name).add_arguments(command)
    return parser


def _module(command: str) -> Any:
    return import_module(f"fgp_vnn.commands.{command.replace('-', '_')}")


if __name__ == "__main__":
    sys.exit(main())
