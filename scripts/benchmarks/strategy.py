"""Measure the effect of each number of the strategy: halved and doubled against the default.

    python scripts/benchmarks/strategy.py [--folder FOLDER] [--route verify] [--fields walk ...]

Takes the instances of a folder that need a search (--all: every instance) and changes one number of
fgp_vnn/strategy.py at a time. Prints the CPU time of solving relative to the default, both run in
turn, and the verdicts that changed. A number that no instance reads is reported as unused and not
run. The routes `certify` (l-infinity balls) and `radius` (l2) use the centres of the instances'
boxes as points.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.api.boxes import BoxProblems
from fgp_vnn.api.cases import box_points
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.instances import Instance, read_benchmark, select
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network import load_network
from fgp_vnn.property import load_property
from fgp_vnn.strategy import Strategy

ROOT = Path(__file__).resolve().parents[2]
EASY = ("attack", "bounds", "property")  # these decide an instance without a search
FARTHEST = 8.0  # the largest radius in question, in half sides of the instance's box

Ask = Callable[[Strategy], str]  # returns the verdict and the method that decided it


@dataclass(frozen=True)
class Change:
    """Another value for one number of the strategy, which is given by its path."""

    path: tuple[str, ...]
    word: str  # halved, doubled or flipped
    value: Any

    def applied(self, strategy: Strategy) -> Strategy:
        """Return the strategy with the new value."""
        changed: Strategy = _with(strategy, self.path, self.value)
        return changed


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0, or 2 for a folder that cannot be read."""
    parser = argparse.ArgumentParser(description="What each number of the strategy is worth.")
    parser.add_argument("--folder", type=Path, default=ROOT / "vnncomp" / "benchmark")
    parser.add_argument("--route", choices=ROUTES, default="verify")
    parser.add_argument("--engine", default="auto", help="of verify and certify")
    parser.add_argument("--fields", nargs="+", help="only those whose names have one of these")
    parser.add_argument("--filter", help="only instances that match this regular expression")
    parser.add_argument("--limit", type=int, help="largest number of instances")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each")
    parser.add_argument(
        "--repeat", type=int, default=1, help="number of runs, of which the fastest counts"
    )
    parser.add_argument("--all", action="store_true", help="also instances without a search")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    try:
        benchmark = read_benchmark(args.folder, timeout=args.timeout)
        chosen = select(benchmark.instances, pattern=args.filter)
    except InputError as error:
        print(f"strategy.py: {error}", file=sys.stderr)
        return 2
    tasks = [] if args.limit == 0 else list(_tasks(chosen, args))
    print(f"{args.route}: {len(tasks)} instances; ratio of processor time, verdicts changed")
    for change in changes(Strategy(), args.fields or [""]):
        print(_line(change, tasks, args.repeat), flush=True)
    return 0


def changes(strategy: Strategy, names: Sequence[str] = ("",)) -> Iterator[Change]:
    """Each number halved and doubled, each switch flipped, if its path contains one of `names`."""
    for path, value in numbers(strategy):
        if not any(name in ".".join(path) for name in names):
            continue
        if isinstance(value, bool):
            yield Change(path, "flipped", not value)
            continue
        for word, factor in (("halved", 0.5), ("doubled", 2.0)):
            other = _scaled(value, factor)
            if other != value:
                yield Change(path, word, other)


def numbers(part: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every number in a dataclass and the dataclasses inside it, with its path."""
    for field in fields(part):
        value, place = getattr(part, field.name), (*path, field.name)
        if is_dataclass(value):
            yield from numbers(value, place)
        elif value is not None and not isinstance(value, str):
            yield place, value


def _scaled(value: Any, factor: float) -> Any:
    """A number, or each number of a tuple, times the factor; a positive integer stays positive."""
    if isinstance(value, tuple):
        return tuple(_scaled(entry, factor) for entry in value)
    return max(round(value * factor), min(value, 1)) if isinstance(value, int) else value * factor


def _with(part: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    return replace(part, **{path[0]: _with(getattr(part, path[0]), path[1:], value)})


def reading(part: Any, seen: set[tuple[str, ...]], path: tuple[str, ...] = ()) -> Any:
    """A copy of the dataclass that records in `seen` the path of each number that is read."""
    kind = type(part)
    names = {field.name for field in fields(part)}

    def get(self: Any, name: str) -> Any:
        if name in names:
            seen.add((*path, name))
        return object.__getattribute__(self, name)

    watched = type(kind.__name__, (kind,), {"__getattribute__": get})
    values = {name: getattr(part, name) for name in names}
    inner = {n: reading(v, seen, (*path, n)) if is_dataclass(v) else v for n, v in values.items()}
    return watched(**inner)


def _tasks(instances: Sequence[Instance], args: argparse.Namespace) -> Iterator[Task]:
    found = 0
    for instance in instances:
        ask = ROUTES[args.route](instance, args.engine)
        seen: set[tuple[str, ...]] = set()
        status, _, by = ask(reading(Strategy(), seen)).partition(" ")
        if args.all or by not in EASY:
            print(f"{instance.onnx} {instance.vnnlib}: {status} by {by}", flush=True)
            yield Task(ask, frozenset(seen))
            found += 1
        if found == args.limit:
            return


@dataclass(frozen=True)
class Task:
    """An instance to solve, and the paths of the numbers that solving it reads."""

    ask: Ask
    reads: frozenset[tuple[str, ...]]


def _line(change: Change, tasks: Sequence[Task], repeat: int) -> str:
    name = f"{'.'.join(change.path):32} {change.word:8} {change.value!s:24}"
    readers = [task for task in tasks if change.path in task.reads]
    if not readers:
        return f"{name} unused"
    other, sums = change.applied(Strategy()), [0.0, 0.0]
    changed: list[str] = []
    for task in readers:
        times: list[list[float]] = [[], []]
        words: list[set[str]] = [set(), set()]
        for _ in range(repeat):
            for place, strategy in enumerate((Strategy(), other)):
                seconds, word = _timed(task.ask, strategy)
                times[place].append(seconds)
                words[place].add(word.partition(" ")[0])
        sums = [total + min(taken) for total, taken in zip(sums, times, strict=True)]
        if words[0] != words[1]:
            changed.append(f"{'/'.join(sorted(words[0]))} to {'/'.join(sorted(words[1]))}")
    return f"{name} {sums[1] / sums[0]:5.2f}  {', '.join(changed) or '-'} ({len(readers)})"


def _timed(ask: Ask, strategy: Strategy) -> tuple[float, str]:
    """CPU seconds and the answer; an error counts as an answer."""
    begin = time.process_time()
    try:
        answer = ask(strategy)
    except Exception as error:  # a value that the code cannot work with
        answer = f"{type(error).__name__} error"
    return time.process_time() - begin, answer


def _verify(instance: Instance, engine: str) -> Ask:
    prop = load_property(Path(instance.property_file))
    loaded = load_network(Path(instance.network_files[0]), points=box_points(prop))

    def ask(strategy: Strategy) -> str:
        budget, settings = Budget.of(instance.timeout, None), Settings(engine=engine)
        boxes = BoxProblems(settings, strategy=strategy)
        for problem in boxes.of_network(loaded, prop, budget):
            boxes.add(run(problem, "verify"))
        verdict = boxes.verdict()
        return f"{verdict.status} {verdict.decided_by}"

    return ask


def _certify(instance: Instance, engine: str) -> Ask:
    certifier, case = _opened(instance, engine)
    epsilon = float((case.upper - case.lower).max()) / 2

    def ask(strategy: Strategy) -> str:
        found = replace(certifier, strategy=strategy).certify(
            (case.lower + case.upper) / 2, epsilon=epsilon, norm="linf", timeout=instance.timeout
        )
        return f"{found.status} {found.decided_by}"

    return ask


def _radius(instance: Instance, engine: str) -> Ask:
    certifier, case = _opened(instance, engine)
    maximum = FARTHEST * float((case.upper - case.lower).max()) / 2

    def ask(strategy: Strategy) -> str:
        found = replace(certifier, strategy=strategy).radius(
            (case.lower + case.upper) / 2, maximum=maximum, timeout=instance.timeout
        )
        return f"{found.ended} {found.decided_by}"

    return ask


def _opened(instance: Instance, engine: str) -> tuple[Certifier, Any]:
    """A certifier for the network of an instance, and the first case of its property."""
    prop = load_property(Path(instance.property_file))
    return Certifier.of(instance.network_files[0], engine=engine), prop.cases[0]


ROUTES: dict[str, Callable[[Instance, str], Ask]] = {
    "verify": _verify,
    "certify": _certify,
    "radius": _radius,
}

if __name__ == "__main__":
    sys.exit(main())
