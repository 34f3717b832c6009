"""fgp-vnn networks: which networks can be read, and how large they are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural
from fgp_vnn.cli.interrupt import leave_on_interrupt

if TYPE_CHECKING:
    from fgp_vnn.network import LoadedNetwork

SUFFIXES = (".onnx", ".onnx.gz")
EXAMPLE = "fgp-vnn networks folder/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", type=Path, nargs="+", metavar="PATH", help="a network, or a folder of networks")
    add("--json", action="store_true", help="print the list as JSON (default: as text)")


def run(args: argparse.Namespace) -> int:
    """Return 0 if all networks can be read, 2 if some cannot."""
    from rich.console import Console
    from rich.progress import track

    files = [file for path in args.paths for file in find_networks(path)]
    refused, rows = 0, list[dict[str, Any]]()
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with leave_on_interrupt():
        for file in track(files, "reading", console=console, transient=True, disable=hidden):
            row = read_one(file)
            refused += "refused" in row
            rows.append(row)
            if not args.json:
                said = row["summary"] if "summary" in row else f"refused: {row['refused']}"
                print(f"{file}: {said}", flush=True)
    read = f"{len(files) - refused} can be read, {refused} refused"
    print(json.dumps(rows) if args.json else f"{plural(len(files), 'network')}: {read}")
    return 2 if refused else 0


def read_one(path: Path) -> dict[str, Any]:
    """The sizes of a network, or the reason why it is refused."""
    from fgp_vnn.network import load_network

    try:
        model = load_network(path)
    except InputError as error:
        return {"file": str(path), "refused": str(error).removeprefix(f"{path}: ")}
    network = model.network
    sizes = {"inputs": network.inputs, "outputs": network.outputs, "neurons": network.neurons}
    shapes = {"input_shape": model.input_shape, "output_shape": model.output_shape}
    own = {"layers": list(network.widths), "operators": dict(model.operators)}
    return {"file": str(path), **sizes, **shapes, **own, "summary": summary(model)}


def find_networks(path: Path) -> list[Path]:
    """The given file, or all networks in a folder and its subfolders."""
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.rglob("*") if p.name.endswith(SUFFIXES) and p.is_file())
    if not found:
        raise InputError(f"{path}: no network in this folder ({' or '.join(SUFFIXES)})")
    return found


def summary(model: LoadedNetwork) -> str:
    """Inputs, outputs, ReLU layers and the file's operators in one line."""
    network = model.network
    operators = ", ".join(f"{count} {kind}" for kind, count in sorted(model.operators.items()))
    sizes = {"input": network.inputs, "output": network.outputs, "neuron": network.neurons}
    size = ", ".join(plural(count, kind) for kind, count in sizes.items())
    return f"{size} in {plural(len(network.layers), 'layer')}; {operators or 'no operator'}"
