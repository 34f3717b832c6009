"""Run every engine on instances with counterexamples that attacks do not find.

    python scripts/evaluation/planted.py

Networks with a narrow spike by construction, and networks trained to hide a planted point. Each
planted point is first confirmed by onnxruntime. Then each engine runs with the attack off: `unsat`
is wrong, and makes the exit code 1. The attack itself also runs, to see how well points are hidden.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fgp_vnn import verify
from planting.instance import Planted
from planting.spikes import conv_spike, dense_spike
from planting.trained import train_planted

ENGINES = ("auto", "split", "walk", "bounds")
STATUSES = ("sat", "unsat", "unknown", "timeout")
RADII = (0.3, 0.03, 0.003)
DENSE: tuple[tuple[int, tuple[int, ...]], ...] = (
    (2, (6, 4)), (5, (20, 20)), (10, (12, 8, 8)), (40, (30, 20)), (5, (16, 12, 12, 12)),
)  # fmt: skip
CONVOLUTIONAL: tuple[tuple[int, int, tuple[int, ...]], ...] = ((4, 2, (10, 8)), (6, 3, (12, 8, 8)))

Counts = dict[tuple[str, str], Counter[str]]  # kind and engine: verdicts


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Hidden counterexamples against every engine.")
    parser.add_argument("--seeds", type=int, default=5, help="networks of each kind")
    parser.add_argument("--trained", type=int, default=3, help="networks that are trained")
    parser.add_argument("--epochs", type=int, default=1500, help="of their training")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds per engine and instance")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console = Console()
    counts: Counts = {}
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        total = chosen.seeds * spikes_per_seed() + chosen.trained
        task = progress.add_task("planting", total=total)
        for kind, planted in instances(chosen.seeds, chosen.trained, chosen.epochs):
            for one in planted:
                bad += decide(kind, one, Path(folder), chosen.limit, counts)
            progress.advance(task)
    return report(console, counts, bad)


def spikes_per_seed() -> int:
    return len(RADII) * (len(DENSE) + len(CONVOLUTIONAL))


def instances(seeds: int, trained: int, epochs: int) -> Iterator[tuple[str, list[Planted]]]:
    for seed in range(seeds):
        for radius in RADII:
            for inputs, widths in DENSE:
                yield "dense spike", [dense_spike(seed, inputs, widths, radius)]
            for side, channels, widths in CONVOLUTIONAL:
                yield "conv spike", [conv_spike(seed, side, channels, widths, radius)]
    for seed in range(trained):
        yield "trained", train_planted(seed, epochs=epochs)


def decide(
    kind: str, planted: Planted, folder: Path, limit: float, counts: Counts
) -> Iterator[str]:
    """Run every engine on an instance; yield the wrong verdicts."""
    files = planted.write(folder)
    for engine in ("attack", *ENGINES):
        status = verify(*files, timeout=limit, engine=engine, attack=engine == "attack").status
        counts.setdefault((kind, engine), Counter())[status] += 1
        if status == "unsat":
            yield f"{engine} says unsat: {planted.name}"


def report(console: Console, counts: Counts, bad: Sequence[str]) -> int:
    """Print a table by kind and engine, then the wrong verdicts; return the exit code."""
    table = Table("planted", "engine", "instances", *STATUSES)
    for (kind, engine), statuses in counts.items():
        row = [sum(statuses.values()), *(statuses[status] for status in STATUSES)]
        table.add_row(kind, engine, *map(str, row))
    console.print(table)
    found = sum(count["sat"] for (_, engine), count in counts.items() if engine == "attack")
    total = sum(sum(count.values()) for (_, engine), count in counts.items() if engine == "attack")
    console.print(f"{total} planted; the attack finds {found}; {len(bad)} wrong verdicts")
    for line in bad:
        console.print(line, soft_wrap=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
