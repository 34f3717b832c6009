"""fgp-vnn check-certificate: check the proof of an unsat, independently of the verifier."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.words import plural
from fgp_vnn.cli.arguments import seconds
from fgp_vnn.cli.file_order import check_order

if TYPE_CHECKING:
    from fgp_vnn.certificate.checker.check import Checked
EXAMPLE = "fgp-vnn check-certificate proof.npz model.onnx prop.vnnlib"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("certificate", type=Path, help="file written by verify --certificate")
    add("model", type=Path, help="the network, .onnx or .onnx.gz")
    add("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")
    add(
        "--timeout",
        type=seconds,
        help="time limit in seconds, after which the certificate is refused (default: no limit)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0 if the certificate proves the property, 1 if it does not."""
    from rich.console import Console

    begin = time.perf_counter()

    def watch() -> None:
        if args.timeout is not None and time.perf_counter() - begin > args.timeout:
            raise InputError(f"the check takes longer than {args.timeout:g} s: increase --timeout")

    files = (args.certificate, args.model, args.property)
    check_order("check-certificate", ("certificate", "network", "property"), files)
    certificate = read_bytes(args.certificate, "certificate")
    network, prop = read_model(args.model), read_bytes(args.property, "property")
    try:
        with Console(stderr=True).status("checking the certificate"):
            from fgp_vnn.certificate.checker.check import check_files

            checked = check_files(certificate, network, prop, watch)
    except InputError as error:
        print(f"certificate refused: {' '.join(str(error).split())}")
        return 1
    except (MemoryError, RecursionError) as error:
        print(f"certificate refused: it is too large to be checked ({type(error).__name__})")
        return 1
    print(f"network {args.model} and property {args.property} are those that it names")
    print(_describe(checked))
    print(f"certificate accepted: unsat is proved ({time.perf_counter() - begin:.2f} s)")
    return 0


def _describe(checked: Checked) -> str:
    return (
        f"checked: {plural(checked.cases, 'input box', 'input boxes')}, "
        f"{plural(checked.disjuncts, 'way')} to break the property, "
        f"{plural(checked.lemmas, 'bound')} of hidden neurons, "
        f"{plural(checked.leaves, 'leaf', 'leaves')}; all bounds were "
        f"recomputed, the smallest that must be above 0 is {checked.margin:.3g}"
    )
