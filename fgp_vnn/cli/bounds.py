"""fgp-vnn bounds: certified ranges of outputs or hidden neurons, or of one objective."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.collector import collector_paused
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_readable
from fgp_vnn.base.model_file import check_model
from fgp_vnn.cli.arguments import (
    add_device,
    add_limits,
    add_threads,
    finite,
    naming_options,
    positive_number,
    set_threads,
)
from fgp_vnn.cli.file_order import check_order
from fgp_vnn.cli.interrupt import leave_on_interrupt
from fgp_vnn.cli.watch import saying_stopped

if TYPE_CHECKING:
    from fgp_vnn.base.ranges import Bounds, Maximum

EXAMPLE = "fgp-vnn bounds model.onnx prop.vnnlib --timeout 60"
_OPTIONS = {"layer": "--layer", "gap": "--gap", "the objective": "--maximise"}
METHODS = ("plain", "optimised", "split")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=Path, help="the network, .onnx or .onnx.gz")
    add(
        "inputs",
        type=Path,
        help="the set of inputs: a property (what it says about outputs is ignored), or an .npz "
        "file with the arrays lower and upper",
    )
    add(
        "--layer",
        type=int,
        help="bound the values that enter this activation layer, counted from 0 (default: bound "
        "the outputs)",
    )
    add(
        "--maximise",
        type=finite,
        nargs="+",
        metavar="C",
        help="bound the maximum of C_0 y_0 + C_1 y_1 + ... (default: bound each output)",
    )
    add(
        "--method",
        choices=METHODS,
        default="split",
        help="plain: linear bounds; optimised: linear bounds with optimised slopes; split: branch "
        "and bound until --gap is reached (default: %(default)s)",
    )
    add(
        "--gap",
        type=positive_number,
        default=1e-4,
        help="stop when a bound is within GAP * max(1, |value|) of a value that the network takes "
        "(default: %(default)g)",
    )
    add(
        "--json",
        action="store_true",
        help="print the result and all details as JSON, with null for infinity (default: as text)",
    )
    add_limits(parser)
    add_threads(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    if args.maximise is not None and args.layer is not None:
        raise InputError("--maximise is about the outputs: leave out --layer")
    if args.maximise is not None and args.method != "split":
        raise InputError("--maximise is used only by the method 'split': leave out --method")
    check_order("bounds", ("network", "property"), (args.model, args.inputs))
    check_model(args.model)
    check_boxes(args.inputs)
    with leave_on_interrupt(), saying_stopped(own_process=args.own_process):
        with collector_paused(keep=args.own_process):  # to import torch faster
            from fgp_vnn.api.values import bounds, maximise

        set_threads(args.threads)
        where = read_boxes(args.inputs)
        chosen = {name: getattr(args, name) for name in ("timeout", "memory", "device", "seed")}
        chosen["gap"] = args.gap
        with naming_options(_OPTIONS), _shown() as progress:
            if args.maximise is not None:
                best = maximise(args.model, where, args.maximise, progress=progress, **chosen)
            else:
                chosen |= {"layer": args.layer, "method": args.method}
                ranges = bounds(args.model, where, progress=progress, **chosen)
    if args.maximise is not None:
        said = f"maximum {best.value!r} to {best.upper!r}; {_facts(best)}"
        print(json.dumps(best.as_dict()) if args.json else said)
    else:
        print(json.dumps(ranges.as_dict()) if args.json else describe(ranges))
    return 0


def check_boxes(path: Path) -> None:
    """Refuse, before anything is loaded, a path that `read_boxes` could not read."""
    check_readable(path, "boxes file" if path.suffix == ".npz" else "property")


def read_boxes(path: Path) -> Any:
    """The property of a file, for its inputs, or the pair (lower, upper) of an .npz file."""
    if path.suffix == ".npz":
        from fgp_vnn.api.points import read_npz

        arrays = read_npz(path, "lower", "upper")
        return arrays["lower"], arrays["upper"]
    from fgp_vnn.property import load_property

    return load_property(path)


def describe(ranges: Bounds) -> str:
    """Return one line per value, and a line on how the search ended."""
    pairs = zip(ranges.lower.ravel().tolist(), ranges.upper.ravel().tolist(), strict=True)
    lines = [f"{number}: {low!r} to {high!r}" for number, (low, high) in enumerate(pairs)]
    return "\n".join([*lines, _facts(ranges)])


def _facts(found: Bounds | Maximum) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.facts().items())


@contextmanager
def _shown() -> Iterator[Callable[[Any, Any], None]]:
    """Yield a callback that shows the widest range so far, if standard error is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda low, high: None
        return
    import numpy as np

    with console.status("bounding") as status:

        def show(low: Any, high: Any) -> None:
            width = float(np.max(np.asarray(high) - np.asarray(low)))
            status.update(f"bounding: the widest range is {width:.6g}")

        yield show
