"""fgp-vnn check: check the counterexample in a results file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fgp_vnn.cli.file_order import check_order

EXAMPLE = "fgp-vnn check out.txt model.onnx prop.vnnlib"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", type=Path, help="results file that says sat and holds a counterexample")
    add("model", type=Path, help="the network, .onnx or .onnx.gz")
    add("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")
    add("--json", action="store_true", help="print the answer as JSON (default: as text)")


def run(args: argparse.Namespace) -> int:
    """Return 0 for a valid counterexample, 1 for an invalid one."""
    files = (args.results, args.model, args.property)
    check_order("check", ("results", "network", "property"), files)
    from fgp_vnn.bench.check import OnnxFile, judge_results, load_judged

    fault = judge_results(args.results, OnnxFile(args.model), load_judged(args.property)).fault
    if args.json:
        print(json.dumps({"valid": not fault, "fault": fault or None}))
    else:
        print(f"not valid: {fault}" if fault else "valid")
    return 1 if fault else 0
