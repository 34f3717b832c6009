"""fgp-vnn supports: whether a network and a property can be read."""

from __future__ import annotations

import argparse
from pathlib import Path

from fgp_vnn.cli.interrupt import leave_on_interrupt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fgp-vnn supports`."""
    parser.add_argument("model", type=Path, help="the network, .onnx or .onnx.gz")
    parser.add_argument("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")


def run(args: argparse.Namespace) -> int:
    """Read both files and say whether they can be verified; the exit code."""
    with leave_on_interrupt():
        from fgp_vnn.api.verify import asked_about, check_fit
        from fgp_vnn.network import load_network
        from fgp_vnn.property import load_property

        prop = load_property(args.property)
        loaded = load_network(args.model, points=asked_about(prop))
        check_fit(loaded, prop, str(args.model), str(args.property))
    print("supported")
    return 0
