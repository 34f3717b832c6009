"""Pieces of work that several processes do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.spread import ALONE, Spread
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.engine.parallel.spread import ForkedSpread
from fgp_vnn.search.best_first import keep_nothing
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.strategy import Slopes, Strategy
from tests.helpers.children import children
from tests.helpers.conv_networks import random_convolutions
from tests.search.test_neurons import hard_query

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@pytest.mark.parametrize("pieces", [0, 1, 2, 7])
@pytest.mark.parametrize("ways", [1, 2, 3])
def test_results_come_in_the_order_of_the_pieces(pieces: int, ways: int) -> None:
    doubled = ForkedSpread(ways, 0.0)(lambda piece: 2 * piece, list("abcdefg"[:pieces]))
    assert list(doubled) == [2 * piece for piece in "abcdefg"[:pieces]]
    assert not children()


def test_pieces_are_done_in_several_processes_only_if_that_pays() -> None:
    def work(piece: str) -> int:
        time.sleep(0.01)
        return os.getpid()

    assert len(set(ForkedSpread(2, 0.0)(work, "abcd"))) == 2
    hasty = ForkedSpread(2, 1e9)
    hasty(work, "abcd")
    assert set(hasty(work, "abcd")) == {os.getpid()}


def test_what_is_quick_as_far_as_is_known_stays_in_one_piece() -> None:
    quick, unknown = ForkedSpread(3, 1.0, rate=0.0), ForkedSpread(3, 1.0)
    assert (quick.fair(7, 100), quick.fair(7, 4)) == (7, 4)
    assert (unknown.fair(7, 100), unknown.fair(7, 4)) == (3, 1)
    assert set(quick(lambda piece: os.getpid(), "abcd")) == {os.getpid()}


@pytest.mark.parametrize(("count", "most", "pieces"), [(9, 100, 2), (24, 8, 6), (428, 314, 4)])
def test_all_processes_get_as_many_pieces_of_one_size(count: int, most: int, pieces: int) -> None:
    size = ForkedSpread(2, 0.0).fair(count, most)
    sizes = [min(size, count - start) for start in range(0, count, size)]
    assert len(sizes) == pieces and 2 * size <= most + 1
    assert abs(sum(sizes[::2]) - sum(sizes[1::2])) <= len(sizes)


def test_a_process_that_is_there_gets_smaller_pieces_of_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spread = ForkedSpread(2, 1.0, rate=0.2)
    assert spread.fair(4, 100) == 4  # 0.4 s for each of two
    monkeypatch.setattr(ForkedSpread, "_running", True)
    assert (spread.fair(4, 100), spread.fair(1, 100)) == (2, 1)


def test_one_thread_is_used_while_there_are_forks_and_as_many_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        spread = ForkedSpread(2, 0.0)
        assert list(spread(lambda piece: torch.get_num_threads(), "abcd")) == [1, 1, 1, 1]
        assert torch.get_num_threads() == 3
        assert list(ForkedSpread(2, 0.0).lead(lambda s: s(_threads, "ab"))) == [1, 1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_forks_cut_batches_into_the_pieces_of_the_main_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Before, at and after the fork, although only after it the processes are there."""

    def slow(piece: range) -> int:
        time.sleep(0.02 * len(piece))
        return os.getpid()

    def work(spread: Spread) -> set[int]:
        for count in (4, 16, 4):
            size = spread.fair(count, 100)
            pieces = [range(count)[start : start + size] for start in range(0, count, size)]
            done = list(spread(slow, pieces))
            assert len(done) == len(pieces)
        return set(done)

    assert len(ForkedSpread(2, 0.1, rate=0.02).lead(work)) == 2
    assert not caplog.records


def _threads(piece: str) -> int:
    return torch.get_num_threads()


@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError, SystemExit])
def test_what_fails_elsewhere_is_done_here(error: type[BaseException]) -> None:
    here = os.getpid()

    def work(piece: str) -> str:
        if os.getpid() != here:
            raise error
        return piece

    assert list(ForkedSpread(3, 0.0)(work, "abcde")) == list("abcde")
    assert not children()


def test_what_a_stopped_process_leaves_undone_is_done_here() -> None:
    here = os.getpid()

    def work(piece: str) -> str:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGSTOP)
        return piece

    assert list(ForkedSpread(2, 0.0, stalled=0.2)(work, "abcd")) == list("abcd")
    assert not children()


def test_an_error_of_a_piece_is_raised_here() -> None:
    def work(piece: str) -> int:
        return 1 // (ord("d") - ord(piece))

    with pytest.raises(ZeroDivisionError):
        list(ForkedSpread(2, 0.0)(work, "abcde"))
    assert not children()


@pytest.mark.parametrize("dense", [False, True])
def test_first_bounds_are_those_of_one_process(dense: bool) -> None:
    operators, matrices, box = random_convolutions(3, torch.float64, depth=4)
    network = matrices if dense else operators
    here, places, forked = os.getpid(), set[int](), ForkedSpread(2, 0.0)

    class Watched(Spread):
        ways, fair = 2, forked.fair

        def __call__(self, work: Any, pieces: Any) -> Any:
            both = forked(lambda piece: (os.getpid(), work(piece)), pieces)
            places.update(place for place, _ in both)
            return [found for _, found in both]

    with torch.no_grad():
        alone = root_bounds(network, box, budget=UNLIMITED)
        shared = root_bounds(network, box, budget=UNLIMITED, spread=Watched())
    assert here in places and len(places) > 1
    for one, other in zip(alone.lower + alone.upper, shared.lower + shared.upper, strict=True):
        assert torch.allclose(one, other)
    assert not children()


def test_hidden_bounds_and_their_proofs_are_those_of_one_process() -> None:
    query, strategy = hard_query(3), Strategy(slopes=Slopes().storable())
    with torch.no_grad():
        plain = root_bounds(query.network, query.domain, budget=UNLIMITED)
        found = []
        for spread in (ForkedSpread(1, 0.0), ForkedSpread(3, 0.0)):
            kept: list[Tensor] = []
            refined = refine_layers(
                query,
                plain,
                strategy.slopes,
                UNLIMITED,
                lambda k, neurons, slopes, kept=kept: kept.append(neurons),  # type: ignore[misc]
                spread,
            )
            sharper = sharpen_layers(
                query,
                refined,
                Turn(4),
                UNLIMITED,
                strategy,
                lambda k, neurons, cover, kept=kept: kept.append(neurons),  # type: ignore[misc]
                spread,
            )
            found.append((sharper, torch.cat(kept)))
    (alone, own), (shared, others) = found
    assert own.tolist() == others.tolist()
    for one, other in zip(
        (*alone.lower, *alone.upper), (*shared.lower, *shared.upper), strict=True
    ):
        assert torch.allclose(one, other)


def test_led_bounds_are_those_of_one_process(caplog: pytest.LogCaptureFixture) -> None:
    """As the steps lead them: copies ask for the same pieces, so that none is left out."""
    query, strategy = hard_query(3), Strategy()
    with torch.no_grad():
        network, domain = query.network, query.domain
        plain = root_bounds(network, domain, budget=UNLIMITED)
        refined = partial(refine_layers, query, plain, strategy.slopes, UNLIMITED, None)
        turn = partial(sharpen_layers, query, plain, Turn(4), UNLIMITED, strategy, keep_nothing)
        works: list[Callable[[Spread], LayerBounds]] = [
            lambda spread: root_bounds(network, domain, budget=UNLIMITED, spread=spread),
            refined,
            turn,
        ]
        for work in works:
            alone, led = work(ALONE), ForkedSpread(2, 0.0).lead(work)
            sides = zip((*alone.lower, *alone.upper), (*led.lower, *led.upper), strict=True)
            assert all(torch.allclose(one, other) for one, other in sides)
    assert not caplog.records and not children()
