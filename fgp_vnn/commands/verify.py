"""fgp-vnn verify: decide one property, write the results file."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fgp_vnn.commands.interrupt import leave_on_interrupt
from fgp_vnn.commands.watch import watched
from fgp_vnn.deadline import Deadline
from fgp_vnn.errors import InputError
from fgp_vnn.settings import DEVICES, ENGINES, PRECISIONS, VARIANTS

if TYPE_CHECKING:
    from fgp_vnn.verdict import Verdict

LEAST_SECONDS = 0.001  # for the work, when loading the libraries has taken all of the time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="the network, .onnx or .onnx.gz")
    parser.add_argument("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")
    parser.add_argument("--results", type=Path, help="write the verdict here, as VNN-COMP reads it")
    parser.add_argument(
        "--certificate", type=Path, help="write the proof of an unsat here, for check-certificate"
    )
    parser.add_argument("--json", action="store_true", help="print everything known, as JSON")
    parser.add_argument(
        "--float32-semantics",
        action="store_true",
        help="unsat only if it holds for every order of evaluation in float32",
    )
    add_threads(parser)
    add_search_arguments(parser)


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that are fields of `Settings`, and the timeout."""
    parser.add_argument("--timeout", help="seconds until the answer has to be there")
    parser.add_argument("--engine", choices=ENGINES, default="auto")
    parser.add_argument("--variant", choices=VARIANTS, default="full-queue", help="of the walk")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--precision", choices=PRECISIONS, default="float64")
    parser.add_argument(
        "--memory", type=float, help="gigabytes for everything; if not given, half of what is free"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the attack's random starts")
    parser.add_argument(
        "--no-attack", dest="attack", action="store_false", help="search without attacks"
    )
    parser.add_argument(
        "--no-alternate",
        dest="alternate",
        action="store_false",
        help="leave inconclusive boundaries unknown, as the paper does",
    )
    parser.add_argument(
        "--lp",
        action="store_true",
        help="settle by an LP, on HiGHS, what projections leave inconclusive",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=int, default=1, help="of torch; more pay only for large networks"
    )


def set_threads(threads: int) -> None:
    if threads < 1:
        raise InputError(f"--threads is {threads}; it must be at least 1")
    import torch

    torch.set_num_threads(threads)


def search_settings(args: argparse.Namespace) -> dict[str, object]:
    names = ("engine", "variant", "device", "precision", "memory", "seed", "attack", "alternate")
    return {name: getattr(args, name) for name in (*names, "lp")}


def read_timeout(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 < seconds < math.inf):
        raise InputError(f"--timeout is {text!r}; it must be a positive number of seconds")
    return seconds


def run(args: argparse.Namespace) -> int:
    timeout = read_timeout(args.timeout)
    deadline = Deadline.after(timeout)
    if args.results is not None:
        check_writable(args.results, "results file")
    if args.certificate is not None:
        check_writable(args.certificate, "certificate")
    with leave_on_interrupt():
        from fgp_vnn.property import load_property
        from fgp_vnn.results import write_results
        from fgp_vnn.verdict import Verdict

        def finish(verdict: Verdict) -> None:
            """Write and print a verdict; what cannot be written is printed all the same."""
            try:
                if args.results is not None:
                    prop = load_property(args.property) if verdict.status == "sat" else None
                    write_results(args.results, verdict, prop)
            finally:
                say(json.dumps(verdict.as_dict()) if args.json else summary(verdict))

        def give_up(reason: str, code: int) -> int:
            seconds = {"total": time.monotonic() - begin}
            try:
                finish(Verdict("timeout", reason=reason, seconds=seconds))
            except InputError as error:
                os.write(2, f"fgp-vnn: {error}\n".encode())
                return 2
            return code

        begin = time.monotonic()
        with watched(deadline, give_up, own_process=args.own_process) as conclude:
            from fgp_vnn.api import verify

            set_threads(args.threads)
            left = None if timeout is None else max(deadline.left(), LEAST_SECONDS)
            settings = search_settings(args) | {"float32_semantics": args.float32_semantics}
            verdict = verify(
                args.model, args.property, timeout=left, certificate=args.certificate, **settings
            )
            conclude()
            finish(verdict)
    code = 0 if args.certificate is None else _report_certificate(verdict)
    if args.own_process:
        os._exit(code)  # half a second sooner than by unloading the libraries one by one
    return code


def say(text: str) -> None:
    """Print a line now, so that a full disk or a closed pipe is an error of one line."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        raise InputError(f"the verdict cannot be printed: {error.strerror}") from None


def _report_certificate(verdict: Verdict) -> int:
    """1, and a line, for an `unsat` without the certificate that was asked for."""
    if verdict.certificate:
        return 0
    missing = verdict.status == "unsat"
    why = (
        verdict.reason
        if missing
        else f"no certificate: only an unsat has one, not {verdict.status}"
    )
    print(f"fgp-vnn: {why}", file=sys.stderr, flush=True)
    return 1 if missing else 0


def check_writable(path: Path, what: str) -> None:
    """Say before the work, not after it, that its result could not be written."""
    if path.is_dir():
        raise InputError(f"{what} {path} is a directory")
    if not path.parent.is_dir():
        raise InputError(f"{what} {path}: the folder {path.parent} does not exist")
    replaced = not path.exists() or path.is_file()  # by renaming a new file in its folder
    if replaced and not os.access(path.resolve().parent, os.W_OK):
        raise InputError(f"{what} {path}: the folder {path.parent} is not writable")


def summary(verdict: Verdict) -> str:
    """One line: the status, what decided it, how long it took, or why nothing did."""
    parts: list[str] = [verdict.status]
    if verdict.decided_by:
        parts.append(f"by {verdict.decided_by}")
    parts.append(f"in {verdict.seconds.get('total', 0.0):.3f} s")
    if verdict.reason:
        parts.append(f"({verdict.reason})")
    if verdict.certificate:
        parts.append(f"with a proof in {verdict.certificate}")
    return " ".join(parts)
