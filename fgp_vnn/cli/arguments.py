"""Options that several commands share, and the checks of their values."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_readable
from fgp_vnn.base.network_list import named_networks
from fgp_vnn.base.words import real_number
from fgp_vnn.cli.file_order import check_order
from fgp_vnn.engine.settings import DEVICES, ENGINES, MOST_JOBS, PRECISIONS, SEEDS, VARIANTS

LEAST_GIGABYTES = 0.3  # held when a search begins: measured on a small network, with CPU torch
LEAST_SECONDS = 0.001  # timeout of work that starts after the deadline
_SEARCH = ("engine", "variant", "device", "seed", "attack", "alternate", "lp")
POSITIVE, FINITE = math.ulp(0.0), sys.float_info.max
MOST_THREADS = 256
NETWORKS = (
    "the network, .onnx or .onnx.gz; for a property of several networks, the list of their names "
    "and files: \"[('f', 'a.onnx'), ('g', 'b.onnx')]\""
)


Value = TypeVar("Value", int, float)


def _within(
    read: Callable[[str], Value], least: Value, most: Value, wanted: str
) -> Callable[[str], Value]:
    """Return a parser of numbers that refuses those below `least` or above `most`."""

    def checked(text: str) -> Value:
        try:
            value = read(text)
            if least <= value <= most:
                return value
        except (ValueError, ZeroDivisionError):  # int() refuses thousands of digits, too
            pass
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not {wanted}")

    return checked


seconds = _within(real_number, POSITIVE, 1e9, "a positive number of seconds, at most 1e9")
gigabytes = _within(
    real_number,
    LEAST_GIGABYTES,
    1e9,
    f"a number of gigabytes from {LEAST_GIGABYTES}, which the program itself takes, to 1e9",
)
radius = _within(real_number, 0.0, FINITE, "a number of at least 0")
positive_number = _within(real_number, POSITIVE, FINITE, "a positive number")
finite = _within(real_number, -FINITE, FINITE, "a number")
seed = _within(int, 0, SEEDS - 1, "a seed: a whole number from 0 to 2^63 - 1")
count = _within(int, 1, sys.maxsize, "a positive whole number")
whole = _within(int, 0, sys.maxsize, "a whole number of at least 0")
threads = _within(int, 1, MOST_THREADS, f"a whole number from 1 to {MOST_THREADS}")
jobs = _within(int, 1, MOST_JOBS, f"a whole number from 1 to {MOST_JOBS}")


def written_radius(text: str) -> str:
    """Check a radius and return its text unchanged."""
    radius(text)
    return text


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that every search has; they are fields of `Settings`."""
    add = parser.add_argument
    add(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="attack: only look for counterexamples; bounds: linear bounds without a search; "
        "split: branch and bound; walk: from region to region, as in the FGP paper; auto: attacks "
        "and bounds, then the search that suits the network (default: %(default)s)",
    )
    add(
        "--variant",
        choices=VARIANTS,
        default="full-queue",
        help="full-queue: the walk continues past inconclusive boundaries; first-boundary: it "
        "stops at the first one (default: %(default)s)",
    )
    add_device(parser)
    add(
        "--no-attack",
        dest="attack",
        action="store_false",
        help="do not look for counterexamples by gradient attacks (default: do)",
    )
    add(
        "--no-alternate",
        dest="alternate",
        action="store_false",
        help="leave inconclusive boundaries undecided, as in the FGP paper (default: settle "
        "them by alternating projections)",
    )
    add(
        "--lp",
        action="store_true",
        help="use the solvers HiGHS and Clarabel where projections are inconclusive (default: off)",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--device",
        choices=DEVICES,
        default="auto",
        help="device to compute on; auto takes a GPU if there is one (default: %(default)s)",
    )
    add(
        "--seed",
        type=seed,
        default=0,
        help="seed for the random starting points of attacks (default: %(default)s)",
    )


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Add the options for deciding VNN-LIB properties."""
    add = parser.add_argument
    add(
        "--precision",
        choices=PRECISIONS,
        default="float64",
        help="precision of the search; proofs take its rounding errors into account "
        "(default: %(default)s)",
    )
    add(
        "--float32-semantics",
        action="store_true",
        help="answer unsat only if it also holds when the network is evaluated in float32, in any "
        "order of operations (default: off)",
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    from fgp_vnn.bench.rules import NEWEST, RULES

    parser.add_argument(
        "--rules",
        type=int,
        choices=list(RULES),
        metavar="YEAR",
        help=f"score by the VNN-COMP rules of this year: {', '.join(map(str, RULES))} "
        f"(default: as before in the same folder, or {NEWEST.year})",
    )


def search_settings(args: argparse.Namespace, *more: str) -> dict[str, Any]:
    """Return the values of the search options, and of those named in `more`, by field."""
    return {name: getattr(args, name) for name in (*_SEARCH, *more)}


def add_limits(parser: argparse.ArgumentParser, per: str = "") -> None:
    """Add --timeout and --memory; `per` says what the time limit is for."""
    add = parser.add_argument
    add("--timeout", type=seconds, help=f"time limit in seconds{per} (default: no limit)")
    add(
        "--memory",
        type=gigabytes,
        metavar="GB",
        help=f"memory limit in gigabytes, at least {LEAST_GIGABYTES}, for all processes together "
        "(default: current use plus half of the free memory)",
    )


class _Interval(argparse.Action):
    """Two numbers, the smaller one first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        low, high = values
        if low > high:
            raise argparse.ArgumentError(self, f"{low:g} is above {high:g}")
        setattr(namespace, self.dest, values)


def add_clip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clip",
        type=finite,
        nargs=2,
        action=_Interval,
        metavar=("LOW", "HIGH"),
        help="range of valid input values; inputs outside it are ignored (default: no limits)",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads",
        type=threads,
        default=1,
        help="number of torch threads; several help only large networks (default: %(default)s)",
    )


def set_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


def network_path(text: str) -> Path:
    """A path from the command line. A file whose name begins with "[" becomes absolute, so that it
    is not taken for a list of networks."""
    path = Path(text)
    return path.absolute() if text.startswith("[") and path.exists() else path


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Let an error that begins with an argument of the Python API begin with the option that gave
    it; `options` are the options by the argument."""
    try:
        yield
    except InputError as error:
        for argument, option in options.items():
            if str(error).startswith(f"{argument} "):
                raise InputError(option + str(error).removeprefix(argument)) from error
        raise


def check_question(command: str, model: Path, prop: Path) -> list[Path]:
    """Return the files of the networks and the property; refuse, before torch is loaded, a path
    that is not a readable file, and a property that comes before its network."""
    check_order(command, ("network", "property"), (model, prop))
    networks = [Path(path) for path in (named_networks(str(model)) or {"": str(model)}).values()]
    for path in networks:
        check_readable(path, "network")
    check_readable(prop, "property")
    return [*networks, prop]


def add_cluster(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --cluster; `what` is the verb of its help text."""
    parser.add_argument(
        "--cluster",
        type=_address,
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help=f"{what} on the Ray cluster at ADDRESS, such as ray://head:10001; without ADDRESS, on "
        "a cluster started on this machine (default: no cluster)",
    )


def _address(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the address is empty: name one, or give --cluster alone")
    return text
