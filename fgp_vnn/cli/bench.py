"""fgp-vnn bench: run a folder of instances, or resume such a run."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fgp_vnn.base.cluster import connected
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural
from fgp_vnn.bench.cluster import RayWorker
from fgp_vnn.bench.facts import provenance
from fgp_vnn.bench.guard import GuardedWorker, WorkerSpec
from fgp_vnn.bench.instances import Benchmark, Instance, read_benchmark, select
from fgp_vnn.bench.journal import CERTIFICATES
from fgp_vnn.bench.pool import Solver
from fgp_vnn.bench.progress import Terminal
from fgp_vnn.bench.run import Plan, Summary, default_memory
from fgp_vnn.bench.run import run as run_plan
from fgp_vnn.bench.tables import Truth, read_truth
from fgp_vnn.budget.budget import GIGABYTE
from fgp_vnn.budget.host import cores
from fgp_vnn.cli.arguments import (
    LEAST_GIGABYTES,
    add_cluster,
    add_precision,
    add_search_arguments,
    count,
    gigabytes,
    network_path,
    search_settings,
    seconds,
)
from fgp_vnn.cli.output import complain
from fgp_vnn.engine.settings import check_certificate, make_settings, unusual

VERIFY = "fgp_vnn:verify"
EXAMPLE = "fgp-vnn bench benchmarks/mnist_fc --jobs 2 --timeout 60"


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose instances, the same for bench and compare."""
    add = parser.add_argument
    add(
        "benchmark",
        type=network_path,
        help="a folder with instances.csv, a tree of such folders, or a CSV file",
    )
    add(
        "--timeout",
        type=seconds,
        help="time limit in seconds for each instance (default: from the CSV file)",
    )
    add(
        "--filter",
        metavar="REGEX",
        help="only instances whose names match this regular expression (default: all)",
    )
    add("--limit", type=count, metavar="N", help="only the first N instances (default: all)")
    add(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="put the instances in a random order, determined by SEED, before --limit is applied "
        "(default: the order of the CSV file)",
    )
    add(
        "--expect",
        type=Path,
        metavar="CSV",
        help="CSV file with the known answers (default: ground_truth.csv beside the instances)",
    )
    add("--out", type=Path, help="folder for the results (default: runs/BENCHMARK)")
    add(
        "--keep-going",
        action="store_true",
        help="skip faulty rows of the CSV file and instances without their files (default: stop)",
    )
    add(
        "--quiet",
        action="store_true",
        help="print only errors and wrong verdicts (default: everything)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_selection(parser)
    add(
        "--jobs",
        type=count,
        metavar="N",
        help="number of instances to run at the same time (default: 1; with --cluster, as many "
        "as fit)",
    )
    add_search_arguments(parser)
    add_precision(parser)
    add(
        "--certificates",
        action="store_true",
        help="write a certificate of every unsat, and check it (default: off)",
    )
    add(
        "--memory",
        type=gigabytes,
        metavar="GB",
        help=f"memory limit in gigabytes, at least {LEAST_GIGABYTES}, for each instance (default: "
        "90 %% of the memory that this machine or container allows, divided by the number of "
        "instances that run at the same time)",
    )
    add(
        "--grace",
        type=seconds,
        default=10.0,
        help="kill an instance that runs this many seconds past its time limit "
        "(default: %(default)g)",
    )
    add_cluster(parser, "run the instances")
    add(
        "--retry-errors",
        action="store_true",
        help="when resuming, run instances again that ended with an error (default: off)",
    )
    add("--dry-run", action="store_true", help="only list the instances (default: run them)")
    add(
        "--verifier",
        default=VERIFY,
        metavar="MODULE:FUNCTION",
        help="Python function that verifies an instance (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0 if all is well, 1 if a verdict contradicts a known answer, 2 for a bad folder."""
    settings = _settings(args)
    chosen = choose(args)
    if chosen is None:
        return 2
    instances, truth = chosen
    if args.dry_run:
        for instance in instances:
            print(f"{instance} {instance.timeout:g}")
        return 0
    plan = Plan(
        instances=instances,
        truth=truth,
        out=args.out or default_out(args.benchmark),
        settings={
            "benchmark": str(args.benchmark.resolve()),
            "timeout": args.timeout,
            "verifier": args.verifier,
            **settings,
            **({"certificates": True} if args.certificates else {}),
        },
        retry_errors=args.retry_errors,
        quiet=args.quiet,
        certificates=args.certificates,
        made=provenance(args.command_line, "warm"),
    )
    stop_on_termination()
    console = Terminal()
    try:
        with ExitStack() as stack:
            summary = run_plan(plan, _solvers(args, settings, plan.out, stack), console)
    except (KeyboardInterrupt, OSError):
        complain(f"the results so far are in {plan.out}: the same command resumes")
        raise
    return _concluded(summary, plan)


def _concluded(summary: Summary, plan: Plan) -> int:
    """Print how a run ended; return 1 if a verdict is wrong or a certificate is missing."""
    faults, proofs = [], summary.certificates
    if not plan.quiet:
        print(f"{summary}: {plan.out}")
        if proofs is not None:
            print(proofs)
    if summary.contradictions:
        faults.append(plural(len(summary.contradictions), "wrong verdict"))
    if proofs is not None and proofs.refused:
        faults.append(f"{plural(proofs.refused, 'certificate')} refused")
    if proofs is not None and proofs.missing:
        faults.append(f"{proofs.missing} unsat without a certificate")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the verifier's arguments: the device, and settings that differ from the default."""
    settings = search_settings(args, "precision", "float32_semantics")
    chosen = make_settings("verify", settings)  # refuse invalid settings now, not per instance
    if args.certificates:
        check_certificate(chosen)
    return {"device": args.device, **unusual(settings)}


def _solvers(
    args: argparse.Namespace, settings: dict[str, Any], out: Path, stack: ExitStack
) -> Callable[[int], Sequence[Solver]]:
    """Return a function from the number of instances to the workers, local or on a cluster."""

    def spec(jobs: int) -> WorkerSpec:
        chosen = os.environ.get("OMP_NUM_THREADS")
        memory = int(args.memory * GIGABYTE) if args.memory else default_memory(jobs)
        return WorkerSpec(
            verifier=args.verifier,
            settings=settings,
            grace=args.grace,
            memory=memory,
            certificates=str(_folder(out / CERTIFICATES).resolve()) if args.certificates else "",
            threads=0 if chosen or args.cluster else max(1, cores() // jobs),
        )

    def here(waiting: int) -> Sequence[Solver]:
        jobs = min(args.jobs or 1, waiting)
        logs = _folder(out / "logs")
        return [GuardedWorker(spec(jobs), logs / f"worker-{slot}.log") for slot in range(jobs)]

    def on_cluster(waiting: int) -> Sequence[Solver]:
        most = None if args.jobs is None else min(args.jobs, waiting)
        cluster = stack.enter_context(connected(args.cluster, most, args.device))
        jobs = min(cluster.capacity, waiting)
        return [RayWorker(spec(jobs), cluster) for _ in range(jobs)]

    return on_cluster if args.cluster else here


def _folder(path: Path) -> Path:
    """Create the folder if it does not exist, and return it."""
    path.mkdir(exist_ok=True)
    return path


def choose(args: argparse.Namespace) -> tuple[tuple[Instance, ...], Truth] | None:
    """Return the instances that --filter, --limit and --shuffle choose, and the known answers; None
    if problems of the benchmark, which are printed, are a reason to stop."""
    benchmark = read_benchmark(args.benchmark, timeout=args.timeout)
    if _report_problems(benchmark, keep_going=args.keep_going):
        return None
    how = {"pattern": args.filter, "limit": args.limit, "shuffle": args.shuffle}
    instances = select(benchmark.instances, **how)
    if not instances:
        raise InputError(f"{args.benchmark}: no instance matches --filter {args.filter!r}")
    return instances, read_truth(benchmark.folders, args.expect)


def _report_problems(benchmark: Benchmark, *, keep_going: bool) -> bool:
    """Print all problems of a benchmark; return True if they are a reason to stop. Raise
    InputError for one problem that leaves nothing to run."""
    if not benchmark.problems:
        return False
    if not benchmark.instances and len(benchmark.problems) == 1:
        raise InputError(benchmark.problems[0])
    print(f"fgp-vnn: {plural(len(benchmark.problems), 'problem')}:", file=sys.stderr)
    for problem in benchmark.problems:
        print(f"  {problem}", file=sys.stderr)
    if not benchmark.instances:
        print("nothing to run", file=sys.stderr)
    elif not keep_going:
        left = plural(len(benchmark.instances), "other instance")
        print(f"nothing was run; --keep-going runs the {left}", file=sys.stderr)
    return not (keep_going and benchmark.instances)


def default_out(benchmark: Path) -> Path:
    """Return the folder for results if --out is not given."""
    return Path("runs") / benchmark.resolve().name.removesuffix(".csv")


def stop_on_termination() -> None:
    """Let SIGTERM end a run as Ctrl-C does: workers are stopped, results are kept."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
