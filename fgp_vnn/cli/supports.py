"""fgp-vnn supports: whether a property of a network can be verified, or at least attacked."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.cli.arguments import NETWORKS, check_question, network_path
from fgp_vnn.cli.interrupt import leave_on_interrupt

EXAMPLE = "fgp-vnn supports model.onnx prop.vnnlib"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=network_path, help=NETWORKS)
    add("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")
    add("--json", action="store_true", help="print the answer as JSON (default: as text)")


def run(args: argparse.Namespace) -> int:
    """Read both files and print whether the property can be verified or only attacked; return the
    exit code, 2 if a file is refused."""
    try:
        return _run(args)
    except InputError as error:
        if not args.json:
            raise
        print(json.dumps({"supported": False, "answer": f"refused: {error}"}))
        return 2


def _run(args: argparse.Namespace) -> int:
    check_question("supports", args.model, args.property)
    with leave_on_interrupt():
        from fgp_vnn.api.cases import load_for
        from fgp_vnn.api.joint import networks_of, open_joint, without_name
        from fgp_vnn.api.refused import check_program
        from fgp_vnn.property import load_property

        prop, said = load_property(args.property, joint=True), "supported"
        model = without_name(args.model, prop)
        try:
            if prop.joint is not None or networks_of(model) is not None:
                open_joint(model, prop)
            else:
                next(load_for((model, args.property), prop))
        except UnsupportedError as error:
            if prop.joint is not None:
                raise
            check_program((model, args.property), prop, error)
            said = f"attacked only: {error}"
    if args.json:
        sizes = {"inputs": prop.inputs, "outputs": prop.outputs, "cases": len(prop.cases)}
        print(json.dumps({"supported": said == "supported", "answer": said, **sizes}))
    else:
        print(said)
    return 0
