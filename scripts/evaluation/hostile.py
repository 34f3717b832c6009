"""Cases made to break the verifier: python scripts/evaluation/hostile.py --cases 20000 --jobs 2.

Each case has an independent oracle: onnxruntime on the file, and exact rational arithmetic. Every
failure gets a folder with its files and the command that repeats it. The exit code is 1 if an
answer is wrong, a certificate of a false claim is accepted, or a process crashes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hostile_cases.kinds import KINDS, try_number
from hostile_cases.pool import Task, run_all
from hostile_cases.tool import Tool
from hostile_cases.trials import Trial

COLUMNS = {
    "sat": ("sat", "not_robust"),
    "unsat": ("unsat", "robust", "accepted"),
    "open": ("unknown", "timeout"),
    "refused": ("refused",),
    "crash": ("crash",),
}
SHOWN = 40  # failures that are printed; all of them are written to files

Counts = Counter[tuple[str, str, str]]  # kind, engine, status or "wrong"


def main(argv: Sequence[str] | None = None, tool: Tool | None = None) -> int:
    """Run the cases; a given tool runs in this process."""
    chosen = _parser().parse_args(argv)
    kinds = chosen.kind or list(KINDS)
    numbers = range(chosen.first, chosen.first + chosen.cases)
    tasks = [Task(kinds[i % len(kinds)], chosen.seed, i // len(kinds)) for i in numbers]
    console = Console()
    counts: Counts = Counter()
    bad: list[str] = []
    done = (
        run_all(tasks, chosen.jobs, chosen.limit, chosen.patience)
        if tool is None
        else _run_here(tasks, tool)
    )
    asked, stopped = 0, False
    try:
        for task, trials in track(done, "asking", len(tasks), console=console):
            asked += 1
            for trial in trials:
                counts[task.kind, trial.engine, trial.status] += 1
                if trial.fault:
                    counts[task.kind, trial.engine, "wrong"] += 1
                    folder = _write(chosen.out, task, trial)
                    bad.append(f"{folder.name}: {trial.fault}")
    except KeyboardInterrupt:
        stopped = True
    _report(console, counts, asked, bad, chosen.out)
    return 1 if bad else 130 if stopped else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Cases made to break the verifier.")
    parser.add_argument("--cases", type=int, default=1000, help="how many, the kinds taking turns")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--seed", type=int, default=0, help="other cases for another seed")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this one")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--limit", type=float, default=0.15, help="seconds for each question")
    parser.add_argument("--patience", type=float, default=120, help="seconds until a case hangs")
    parser.add_argument("--out", type=Path, default=Path("runs/hostile"), help="failures go here")
    return parser


def _run_here(tasks: Sequence[Task], tool: Tool) -> Iterator[tuple[Task, list[Trial]]]:
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            yield task, try_number(task.kind, task.seed, task.number, tool, Path(folder))


def _write(out: Path, task: Task, trial: Trial) -> Path:
    """Write the folder of a failure: its files, its fault, and the command that repeats it."""
    folder = out / f"{task.kind}_{task.seed}_{task.number}_{trial.engine}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in trial.files.items():
        (folder / name).write_bytes(data)
    again = f"python scripts/evaluation/hostile.py --kind {task.kind} --seed {task.seed}"
    again += f" --first {task.number} --cases 1"
    command = f"cd {folder} && {trial.command}" if trial.command else again
    (folder / "repeat.sh").write_text(f"{command}\n")
    (folder / "why.txt").write_text(f"{trial.fault}\nmade by: {again}\n")
    return folder


def _report(console: Console, counts: Counts, cases: int, bad: Sequence[str], out: Path) -> None:
    """Print a table by kind and engine, then the failures."""
    table = Table("kind", "engine", "asked", *COLUMNS, "wrong")
    for kind, engine in sorted({(kind, engine) for kind, engine, _ in counts}):
        row = [sum(counts[kind, engine, s] for s in names) for names in COLUMNS.values()]
        table.add_row(kind, engine, *map(str, [sum(row), *row, counts[kind, engine, "wrong"]]))
    console.print(table)
    for line in bad[:SHOWN]:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    where = f", see {out}" if bad else ""
    console.print(f"{cases} cases: {len(bad)} wrong{where}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
