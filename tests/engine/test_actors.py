"""Searches on a real Ray of two nodes: a lost node costs what it had, and nothing else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from fgp_vnn.base.cluster import Cluster
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.cli.main import main
from fgp_vnn.engine.parallel.actors import Actors
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.engine.parallel.worker import Work
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.activations.gates import SILU
from fgp_vnn.network.maps.matrix import compressed
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import Sharing
from tests.engine.test_crew import accounted_for, by_inputs, by_neurons, nearly
from tests.helpers.command_line import MODEL, SAFE
from tests.helpers.places import ROOT
from tests.helpers.random_cases import exact_confirm

HASTY = Sharing(alone=(0.0, 0.0), turn=0.0, pause=0.01)
LIMIT = 200.0  # seconds, for a machine that is slow
QUIET = {"include_dashboard": False, "include_log_monitor": False}  # processes that nobody asks


def nobody(points: object) -> None:
    """Confirms nothing."""


@pytest.fixture
def nodes() -> Iterator[Any]:
    """A cluster of two nodes with a core each, on this machine."""
    pytest.importorskip("ray", reason="needs pip install 'fgp-vnn[cluster]'")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.setenv("RAY_worker_niceness", "0")  # or other tests leave the actors no time to start
    from ray.cluster_utils import Cluster as Nodes

    try:
        found = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, **QUIET})
        found.add_node(num_cpus=1)
        found.connect()
        yield found
        import ray

        ray.shutdown()
        found.shutdown()
    finally:
        patch.undo()


class Waiting(Crew):
    """A crew that leaves all of the work to others."""

    def _do_here(self, seconds: float) -> None:
        time.sleep(0.01)


def share(
    search: Divisible, after: Callable[[], object] = lambda: None, actors: int = 2
) -> set[int]:
    """Let actors work on a search; how many of these had a part at a time."""
    working: set[int] = set()

    def over() -> bool:
        working.add(sum(task is not None for task in crew._tasks.values()))
        after()
        return search.found is not None or search.enough()

    staff = Actors(Cluster(actors, {"num_cpus": 1}, None))
    with torch.no_grad(), Waiting(search, actors, search.budget, HASTY, staff) as crew:
        crew.work(over)
    return working


@pytest.mark.slow
def test_actors_prove_all_of_it_judge_nothing_and_a_lost_node_costs_only_its_parts(
    nodes: Any,
) -> None:
    """One test of all that needs the cluster, so that no two processes start one each."""
    prove_what_one_process_does()
    have_a_counterexample_judged_here()
    lose_a_node(nodes)


def prove_what_one_process_does() -> None:
    search = by_inputs(nearly(0.05, 6), lambda points: None, Budget.of(LIMIT, None))
    working = share(search)
    assert search.outcome().status == "unsat"
    assert max(working) >= 1  # two, unless the first is done before the other has started
    assert search.handed_out == 0 and search.closed == pytest.approx(1)


def have_a_counterexample_judged_here() -> None:
    query = nearly(-0.02)
    exact, refusals = exact_confirm(query), iter(range(3))
    search = by_inputs(
        query,
        lambda p: None if next(refusals, None) is not None else exact(p),
        Budget.of(LIMIT, None),
    )
    share(search, actors=1)
    assert search.outcome().status == "sat"


def lose_a_node(nodes: Any) -> None:
    """The second node is taken away while it works; the search ends on the first one."""
    search = by_neurons(nearly(0.05, 6), lambda points: None, Budget.of(LIMIT, None))
    other, lost = nodes.list_all_nodes()[-1], list[float]()

    def lose() -> None:
        out = search.handed_out
        if not lost and out:
            lost.append(search.closed)
            nodes.remove_node(other)

    share(search, lose)
    assert lost and lost[0] < 1
    assert search.handed_out == 0
    assert accounted_for(search) == pytest.approx(1)
    search.run(search.enough)
    assert search.outcome().status == "unsat" and search.open == 0


def test_an_activation_that_there_is_one_of_stays_that_one_elsewhere() -> None:
    assert unpacked(packed([RELU, SILU])) == [RELU, SILU]
    assert unpacked(packed(RELU)) is RELU and unpacked(packed(SILU)) is SILU


def test_a_compressed_matrix_arrives_as_it_is() -> None:
    matrix = torch.eye(300, dtype=torch.float64)
    matrix[0, 2] = 5.0
    sent = compressed(matrix)
    assert sent is not None
    for one, other in zip(sent, unpacked(packed(sent)), strict=True):
        assert other.layout is torch.sparse_csr
        assert torch.equal(one.to_dense(), other.to_dense())


def test_what_cannot_be_sent_is_searched_here() -> None:
    """The error is one that a search without more processes goes on after."""
    search = by_inputs(nearly(0.1, 4), nobody, UNLIMITED)
    search.query = replace(search.query, network=lambda x: x)  # type: ignore[attr-defined]
    staff = Actors(Cluster(2, {"num_cpus": 1}, None))
    pytest.importorskip("ray", reason="needs pip install 'fgp-vnn[cluster]'")
    with pytest.raises(OSError, match="cannot be sent"):
        staff.hire(Work(search, UNLIMITED, HASTY, 1), [], 2)


@pytest.mark.parametrize("begin", [by_inputs, by_neurons])
def test_a_search_that_was_sent_goes_on_as_it_would_have_here(begin: Any) -> None:
    search = begin(nearly(0.3, 4), nobody, UNLIMITED)
    records, found = packed(search.frontier.everything()), []
    for copy in (search.copy(nobody, UNLIMITED, 1), None):
        own = copy or unpacked(packed(search.copy(nobody, UNLIMITED, 1))).copy(nobody, UNLIMITED, 1)
        own.frontier.put(unpacked(records))
        with torch.no_grad():
            own.run(own.enough)
        found.append((own.bounded, own.closed))
    assert found[0] == found[1] and found[0][0] > 0


@pytest.mark.parametrize(
    ("missing", "said"), [(True, "pip install 'fgp-vnn[cluster]'"), (False, "the address is empty")]
)
def test_a_cluster_that_is_not_there_is_one_line(
    missing: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["verify", str(MODEL), str(SAFE), "--cluster", *([] if missing else [""])]) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1
