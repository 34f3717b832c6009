"""Deadlines and memory: what a budget is made of, and that everything that loops gets one."""

from __future__ import annotations

import ast
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import GIGABYTE, LEAST, UNLIMITED, Budget
from fgp_vnn.budget.host import free_memory, group_limits, total_memory
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.regions.halfspaces import HalfSpaces
from fgp_vnn.regions.nearest_points import nearest, nearest_in_norm
from fgp_vnn.search.last_boxes import Parts, walk_boxes
from fgp_vnn.search.walk.walk import WalkOptions
from fgp_vnn.strategy import COMMON
from tests.helpers.places import PACKAGE
from tests.helpers.small_networks import random_network, robustness_query

ENTRANCES = {PACKAGE / "api", PACKAGE / "budget"}  # where limits come from a user, and are made
PAST = Budget(0.0, 1 << 30)


@given(st.integers(0, 1 << 40))
def test_shares_of_the_memory_are_no_more_than_the_whole(total: int) -> None:
    budget = Budget(math.inf, total)
    assert budget.at_once + budget.waiting + budget.matrices <= total


@given(st.floats(0, 1), st.floats(0, 1e6))
def test_a_share_is_a_part_of_the_time_that_is_left(part: float, seconds: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: 1000.0)
        whole = Budget.of(seconds, 1.0)
        assert whole.share(part).left() == pytest.approx(part * seconds, abs=1e-6)
        assert whole.share(part).memory == whole.memory
        assert Budget.of(None, 1.0).share(part).left() == pytest.approx(
            part * COMMON.usual, abs=1e-6
        )
        patch.setattr("time.monotonic", lambda: 1001.0 + seconds)
        assert whole.expired() and whole.share(part).expired()


def test_what_is_held_meanwhile_is_taken_off_the_memory_and_never_all_of_it() -> None:
    whole = Budget(100.0, LEAST + 1000)
    assert whole.beside(400) == Budget(100.0, LEAST + 600)
    assert whole.beside(5000) == Budget(100.0, LEAST)


def test_a_budget_that_is_sent_keeps_the_seconds_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    sent = pickle.dumps([Budget(107.0, LEAST), UNLIMITED])
    monkeypatch.setattr("time.monotonic", lambda: 5000.0)  # of another machine
    assert pickle.loads(sent) == [Budget(5007.0, LEAST), UNLIMITED]


def test_seconds_count_from_the_moment_that_is_given() -> None:
    assert Budget.of(5.0, 1.0, since=100.0).moment == 105.0
    assert Budget.of(None, 1.0, since=100.0).moment == math.inf


def test_a_budget_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        UNLIMITED.memory = 0  # type: ignore[misc]


def test_a_budget_is_less_what_the_process_holds_already() -> None:
    assert 0 < Budget.of(None, 100.0).memory < 100 * GIGABYTE
    assert Budget.of(None, 1e-9).memory == LEAST
    assert Budget.of(None, 1e300).memory <= sys.maxsize
    assert LEAST <= Budget.of(None, None).memory <= psutil.virtual_memory().total


@pytest.mark.parametrize(("kind", "gigabytes"), [("RLIMIT_DATA", 2), ("RLIMIT_AS", 8)])
def test_nothing_is_free_beyond_the_limits_of_the_process(kind: str, gigabytes: int) -> None:
    limit = gigabytes * GIGABYTE  # more than the libraries take
    code = (
        "import resource; from fgp_vnn.budget.budget import Budget\n"
        f"resource.setrlimit(resource.{kind}, ({limit}, {limit}))\n"
        "print(Budget.of(None, None).memory)"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert LEAST < int(done.stdout) < limit / 2


@pytest.fixture
def groups(tmp_path: Path) -> Callable[..., list[tuple[int, int]]]:
    """The limits that are read from files with these contents."""

    def read(process: str, **files: str) -> list[tuple[int, int]]:
        (tmp_path / "process").write_text(process)
        for name, content in files.items():
            path = tmp_path / "mount" / name.replace("__", "/").replace("--", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return list(group_limits(tmp_path / "process", tmp_path / "mount"))

    return read


def test_control_groups_of_the_second_version_limit_what_is_in_them(
    groups: Callable[..., list[tuple[int, int]]],
) -> None:
    files = {
        "a__b__memory--max": "max\n",
        "a__memory--max": "5000\n",
        "a__memory--current": "3000\n",
        "a__memory--stat": "anon 1\ninactive_file 1000\n",
        "memory--max": "9000\n",
    }
    assert groups("0::/a/b\n", **files) == [(5000, 2000), (9000, 0)]


def test_control_groups_of_the_first_version_limit_what_is_in_them(
    groups: Callable[..., list[tuple[int, int]]],
) -> None:
    files = {
        "memory__a__memory--limit_in_bytes": "7000\n",
        "memory__a__memory--usage_in_bytes": "6000\n",
        "memory__a__memory--stat": "inactive_file 1\ntotal_inactive_file 500\n",
    }
    process = "9:name=systemd:/\n5:cpu,memory:/a\n3:cpu:/other\n"
    assert groups(process, **files) == [(7000, 5500)]


def test_a_path_of_the_host_leaves_the_limit_at_the_mount(
    groups: Callable[..., list[tuple[int, int]]],
) -> None:
    assert groups("0::/docker/abc\n", **{"memory--max": "800"}) == [(800, 0)]


@pytest.mark.parametrize("process", ["", "0::/\n", "4:memory:/\n"])
def test_without_files_of_control_groups_there_is_no_limit(
    groups: Callable[..., list[tuple[int, int]]], process: str
) -> None:
    assert groups(process) == []


def test_a_group_limits_what_is_free_and_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimpleNamespace(total=10 << 40, available=9 << 40)
    monkeypatch.setattr("psutil.virtual_memory", lambda: machine)
    monkeypatch.setattr("fgp_vnn.budget.host.group_limits", lambda *paths: iter([(3000, 1000)]))
    assert (total_memory(), free_memory()) == (3000, 2000)
    monkeypatch.setattr("fgp_vnn.budget.host.group_limits", lambda *paths: iter([(3000, 4000)]))
    assert free_memory() == 0


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield path.name, node


@pytest.mark.slow
def test_no_signature_has_a_budget_of_its_own() -> None:
    """A default would stand in for a budget that was forgotten."""
    asking = 0
    for file, node in functions():
        spec = node.args
        plain = [*spec.posonlyargs, *spec.args]
        defaults = [None] * (len(plain) - len(spec.defaults)) + list(spec.defaults)
        pairs = [
            *zip(plain, defaults, strict=True),
            *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            asks = argument.annotation is not None and "Budget" in ast.unparse(argument.annotation)
            assert not asks or default is None, f"{file}: {node.name}({argument.arg})"
            asking += asks
    assert asking > 40


def test_budgets_are_made_where_a_user_gives_the_limits_and_nowhere_else() -> None:
    makers = {
        path.parent
        for path in PACKAGE.rglob("*.py")
        if any(maker in path.read_text() for maker in ("Budget(", "Budget.of", "UNLIMITED"))
    }
    assert makers and makers <= set(ENTRANCES)


@pytest.mark.parametrize("kind", ["l2", "l1", "linf"])
def test_nearest_points_are_looked_for_only_while_there_is_time(kind: str) -> None:
    """Otherwise this test would not end."""
    zero = torch.zeros(3, dtype=torch.float64)
    domains: dict[str, Domain] = {
        "l2": L2Ball(zero, 1.0),
        "l1": L1Ball(zero, 1.0),
        "linf": Box(zero - 1, zero + 1),
    }
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 6, 3, generator=generator, dtype=torch.float64)
    values = torch.full((2, 6), 0.3, dtype=torch.float64)
    spaces = HalfSpaces(rows, values, torch.zeros_like(values))
    find = nearest if kind == "l2" else nearest_in_norm
    part, points = find(domains[kind], spaces, PAST, steps=10**12, look=20)
    assert bool((part >= 0).all()) and points.shape == (2, 3)


def test_boxes_that_no_time_is_left_for_stay_open() -> None:
    center = torch.full((2,), 0.5, dtype=torch.float64)
    box = Box(center - 0.5, center + 0.5)
    query = robustness_query(random_network([2, 4, 3], 0), box)
    signs = torch.zeros(3, 4, dtype=torch.int8)
    boxes = Parts(box.lower.expand(3, -1), box.upper.expand(3, -1), signs)
    walked = list(walk_boxes(query, boxes, lambda points: None, PAST, WalkOptions(lp=True)))
    assert [outcome.status for outcome in walked] == ["timeout"] * 3


def test_bounds_under_any_budget_are_no_tighter_than_with_all_the_time() -> None:
    network = random_network([3, 6, 6, 2], 1)
    box = Box(torch.full((3,), -1.0).double(), torch.ones(3).double())
    whole = root_bounds(network, box, budget=UNLIMITED)
    for budget in (PAST, replace(UNLIMITED, memory=0)):
        some: LayerBounds = root_bounds(network, box, budget=budget)
        for a, b in zip(some.lower, whole.lower, strict=True):
            assert bool((a <= b + 1e-9).all())
