"""fgp-vnn supports: whether a network and a property can be read."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.interrupt import leave_on_interrupt

EXAMPLE = "fgp-vnn supports model.onnx prop.vnnlib"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fgp-vnn supports`."""
    parser.add_argument("model", type=Path, help="the network, .onnx or .onnx.gz")
    parser.add_argument("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")
    parser.add_argument("--json", action="store_true", help="print the answer and sizes as JSON")


def run(args: argparse.Namespace) -> int:
    """Read both files and say whether they can be verified; the exit code."""
    try:
        return _run(args)
    except InputError as error:
        if args.json:
            print(json.dumps({"supported": False, "reason": str(error)}))
        raise


def _run(args: argparse.Namespace) -> int:
    with leave_on_interrupt():
        from fgp_vnn.api.verify import asked_about, check_fit
        from fgp_vnn.network import load_network
        from fgp_vnn.property import load_property

        prop = load_property(args.property)
        loaded = load_network(args.model, points=asked_about(prop))
        check_fit(loaded, prop, str(args.model), str(args.property))
    if args.json:
        sizes = {"inputs": prop.inputs, "outputs": prop.outputs, "cases": len(prop.cases)}
        told = {"supported": True, **sizes, "neurons": loaded.network.neurons}
        print(json.dumps(told | {"warnings": list(prop.warnings)}))
    else:
        print("supported")
    return 0
