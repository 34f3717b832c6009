"""A benchmark run: solve the instances that have no result yet, and count the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from fgp_vnn.bench.certificates import Certificates, certificates_of
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.journal import open_journal
from fgp_vnn.bench.pool import Solver, run_all
from fgp_vnn.bench.progress import view
from fgp_vnn.bench.record import Record, as_record
from fgp_vnn.bench.tables import Truth
from fgp_vnn.budget.host import total_memory


@dataclass(frozen=True)
class Plan:
    """The instances to run, and where to write the results."""

    instances: tuple[Instance, ...]
    truth: Truth
    out: Path
    settings: Mapping[str, Any]  # shared by all results of the folder
    retry_errors: bool = False
    quiet: bool = False
    certificates: bool = False  # write one for every unsat
    made: Mapping[str, Any] | None = None  # where, when and how the run is made


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    tally: Mapping[str, int]
    contradictions: tuple[Record, ...]
    total: int
    certificates: Certificates | None = None  # if they were asked for

    def __str__(self) -> str:
        solved = self.tally.get("sat", 0) + self.tally.get("unsat", 0)
        words = ", ".join(f"{count} {word}" for word, count in sorted(self.tally.items()))
        return f"{solved} of {self.total} solved ({words or 'none run'})"


def run(plan: Plan, make_solvers: Callable[[int], Sequence[Solver]], console: Console) -> Summary:
    """Run the instances without a result; return the summary over all instances.

    `make_solvers` gets the number of instances to run.
    """
    wanted = {instance.key for instance in plan.instances}
    retry = plan.retry_errors
    with open_journal(plan.out, plan.settings, retry_errors=retry, made=plan.made) as journal:
        waiting = [instance for instance in plan.instances if instance.key not in journal.records]
        done = len(plan.instances) - len(waiting)
        if done and not plan.quiet:
            console.print(f"{done} of {len(plan.instances)} done before, {len(waiting)} to go")
        if waiting:
            solvers = make_solvers(len(waiting))
            shown = view(console, len(waiting), len(solvers), quiet=plan.quiet)
            with shown, closing(run_all(waiting, solvers)) as events:
                for event in events:
                    if event.answer is None:
                        shown.started(event.slot, event.instance)
                        continue
                    expected = plan.truth.get(event.instance.key, "")
                    record = as_record(event.instance, event.answer, expected)
                    texts = event.answer.counterexample, event.answer.log
                    shown.finished(event.slot, journal.append(record, *texts))
        records = [record for key, record in journal.records.items() if key in wanted]
    return Summary(
        tally=Counter(record.result for record in records),
        contradictions=tuple(record for record in records if record.contradiction),
        total=len(plan.instances),
        certificates=certificates_of(records) if plan.certificates else None,
    )


def default_memory(jobs: int) -> int:
    """Return the bytes for each of `jobs` workers: together 90 % of the usable memory."""
    return int(0.9 * total_memory() / jobs)
