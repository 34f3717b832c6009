"""fgp-vnn verify: decide one property, write the results file."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fgp_vnn.base.collector import collector_paused
from fgp_vnn.base.errors import InputError, OutOfMemoryError, os_reason
from fgp_vnn.base.files import check_writable
from fgp_vnn.base.words import NO_CERTIFICATE
from fgp_vnn.cli.arguments import (
    LEAST_SECONDS,
    NETWORKS,
    add_cluster,
    add_limits,
    add_precision,
    add_search_arguments,
    add_threads,
    check_question,
    jobs,
    network_path,
    search_settings,
    set_threads,
)
from fgp_vnn.cli.interrupt import leave_on_interrupt
from fgp_vnn.cli.output import NOBODY_READS, discard_output
from fgp_vnn.cli.story import add_verbose, clear, told
from fgp_vnn.cli.watch import watched

if TYPE_CHECKING:
    from fgp_vnn.base.verdict import Verdict

EXAMPLE = "fgp-vnn verify model.onnx prop.vnnlib --timeout 60 --results out.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=network_path, help=NETWORKS)
    add("property", type=Path, help="the property, .vnnlib or .vnnlib.gz")
    add(
        "--results",
        type=Path,
        metavar="FILE",
        help="write the verdict, and the counterexample of a sat, in the format of VNN-COMP "
        "(default: not written)",
    )
    add(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="write the proof of an unsat, for check-certificate (default: not written)",
    )
    add(
        "--json",
        action="store_true",
        help="print the verdict and all details as JSON (default: as text)",
    )
    add_verbose(parser)
    add_limits(parser)
    add(
        "--jobs",
        type=jobs,
        metavar="N",
        help="number of processes, for a search that takes more than a moment (default: one per "
        "core)",
    )
    add_cluster(parser, "search")
    add_threads(parser)
    add_search_arguments(parser)
    add_precision(parser)


def run(args: argparse.Namespace) -> int:
    """Verify one property, write and print the verdict, and return the exit code."""
    begin = time.monotonic()
    _check_files(args)
    # With a cluster, Ctrl-C has to raise, so that a local one is shut down.
    with leave_on_interrupt() if args.cluster is None else nullcontext():
        finish, give_up = _ways_to_end(args, begin)
        ends = math.inf if args.timeout is None else begin + args.timeout
        with watched(ends, give_up, own_process=args.own_process) as conclude:
            # Saves a fifth of a second while torch is imported.
            with collector_paused(keep=args.own_process):
                from fgp_vnn.api.verify import verify
                from fgp_vnn.base.verdict import Verdict

            set_threads(args.threads)
            settings = search_settings(args, "memory", "precision", "float32_semantics", "jobs")
            settings["cluster"] = args.cluster
            settings["certificate"] = args.certificate
            ready = time.monotonic()
            if args.timeout is not None:
                settings["timeout"] = max(ends - ready, LEAST_SECONDS)
            try:
                with told(args.verbose):
                    verdict = verify(args.model, args.property, **settings)
            except OutOfMemoryError as error:
                verdict = Verdict("unknown", reason=str(error))
            # The times count from the start of the command, like the timeout.
            whole = {"start": ready - begin, "total": time.monotonic() - begin}
            verdict = replace(verdict, seconds=verdict.seconds | whole)
            conclude()
            finish(verdict)
    code = 0 if args.certificate is None else _report_certificate(verdict)
    if args.own_process:
        os._exit(code)  # half a second faster than unloading the libraries
    return code


def _ways_to_end(
    args: argparse.Namespace, begin: float
) -> tuple[Callable[[Verdict], None], Callable[[str, int], int]]:
    """Return two functions: one writes and prints a verdict, the other does so with a `timeout` for
    a given reason and returns the exit code. Their imports are here, since `give_up` may be called
    at any time."""
    from fgp_vnn.base.verdict import Verdict
    from fgp_vnn.property import load_property
    from fgp_vnn.property.results import write_results

    def finish(verdict: Verdict) -> None:
        try:  # print the verdict even if the results file cannot be written
            if args.results is not None:
                sat = verdict.status == "sat"
                prop = load_property(args.property, joint=True) if sat else None
                write_results(args.results, verdict, prop)
        finally:
            clear()
            text = json.dumps(verdict.as_dict()) if args.json else summary(verdict)
            hinted = verdict.status == "sat" and not args.json and sys.stdout.isatty()
            say(text + (_where_found(args.results) if hinted else ""))

    def give_up(reason: str, code: int) -> int:
        seconds = {"total": time.monotonic() - begin}
        try:
            finish(Verdict("timeout", reason=reason, seconds=seconds))
        except InputError as error:
            os.write(2, f"fgp-vnn: {error}\n".encode())
            return 2
        except BrokenPipeError:
            return NOBODY_READS
        return code

    return finish, give_up


def _check_files(args: argparse.Namespace) -> None:
    """Refuse files that cannot be read or written, and outputs that would overwrite another file of
    this run."""
    read = check_question("verify", args.model, args.property)
    results, certificate = args.results, args.certificate
    if results is not None:
        check_writable(results, "results file", read)
    if certificate is not None:
        check_writable(certificate, "certificate", read)
        if results is not None and results.resolve() == certificate.resolve():
            raise InputError(f"--results and --certificate are both {results}")


def say(text: str) -> None:
    """Print a line and flush it, so that a full disk is reported here as an InputError."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise InputError(f"the verdict cannot be printed: {os_reason(error)}") from None


def _where_found(results: Path | None) -> str:
    """A hint where to find the counterexample, for a user at a terminal."""
    if results is not None:
        return f"; the counterexample is in {results}"
    return "; --results FILE writes the counterexample, --json prints it"


def _report_certificate(verdict: Verdict) -> int:
    """Print a line if there is no certificate; return 1 if the verdict is `unsat`, else 0."""
    if verdict.certificate:
        return 0
    missing = verdict.status == "unsat"
    other = f"{NO_CERTIFICATE}: only an unsat has one, not {verdict.status}"
    print(f"fgp-vnn: {verdict.reason if missing else other}", file=sys.stderr, flush=True)
    return 1 if missing else 0


def summary(verdict: Verdict) -> str:
    """Return one line: the status, what decided it and the time, or the reason why nothing was
    decided; without the reason for a missing certificate."""
    parts: list[str] = [verdict.status]
    if verdict.decided_by:
        parts.append(f"by {verdict.decided_by}")
    parts.append(f"in {verdict.seconds.get('total', 0.0):.3f} s")
    if verdict.reason and not verdict.reason.startswith(NO_CERTIFICATE):
        parts.append(f"({verdict.reason})")
    if verdict.certificate:
        parts.append(f"with a proof in {verdict.certificate}")
    return " ".join(parts)
