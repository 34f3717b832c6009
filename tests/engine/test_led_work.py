"""Functions that share out several batches of pieces to copies that last as long as they do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fgp_vnn.base.spread import ALONE, Spread
from fgp_vnn.engine.parallel.processes import fork
from fgp_vnn.engine.parallel.spread import ForkedSpread
from tests.helpers.children import children

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
Seen = list[tuple[int, int, int]]


def summed(
    spread: Spread, each: Callable[[int, int], None] = lambda batch, number: None
) -> tuple[int, Seen]:
    """A number that depends on all batches in turn, and which process has done each piece."""
    total, seen = 1, list[tuple[int, int, int]]()
    for batch in range(5):
        numbers = torch.arange(6) + total % 7

        def work(piece: torch.Tensor, batch: int = batch) -> tuple[int, int]:
            each(batch, int(piece[0]))
            return os.getpid(), int(piece.square().sum())

        pieces = torch.split(numbers, spread.fair(len(numbers), len(numbers)))
        for number, (process, value) in enumerate(spread(work, pieces)):
            seen.append((batch, number, process))
            total += value * 10**batch
    return total, seen


def plain(spread: Spread) -> int:
    """The same without who has done it."""
    total = 0
    for batch in range(4):
        numbers = torch.arange(12) + total % 5
        pieces = torch.split(numbers, spread.fair(len(numbers), len(numbers)))
        total += sum(spread(lambda piece: int(piece.square().sum()), pieces)) * 7**batch
    return total


@pytest.mark.parametrize("ways", [1, 2, 3])
@pytest.mark.parametrize("rate", [0.0, 1e9])
def test_what_is_led_is_what_one_process_does(ways: int, rate: float) -> None:
    spread = ForkedSpread(ways, 0.0, rate=rate)
    assert spread.lead(plain) == plain(ALONE)
    assert spread.lead(plain) == plain(ALONE)
    assert not children()


def test_the_same_copies_do_their_parts_of_all_batches() -> None:
    _, seen = ForkedSpread(3, 0.0).lead(summed)
    assert {number for _, number, _ in seen} == {0, 1, 2}
    for part in range(3):
        assert len({process for _, number, process in seen if number == part}) == 1
    assert len({process for _, _, process in seen}) == 3


def test_a_copy_that_comes_late_knows_what_was_done_before_it() -> None:
    """The first batch is quick as far as is known, and then is not."""

    def slowly(batch: int, number: int) -> None:
        time.sleep(0.02)

    spread = ForkedSpread(2, 1e-3, rate=0.0)
    _, seen = spread.lead(lambda given: summed(given, slowly))
    assert [number for batch, number, _ in seen if batch == 0] == [0]
    assert {process for batch, _, process in seen if batch == 0} == {os.getpid()}
    assert len({process for batch, _, process in seen if batch > 1}) == 2
    assert not children()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_batches_after_the_loss_of_a_copy_are_shared_out_again(end: signal.Signals) -> None:
    here = os.getpid()

    def lose(batch: int, number: int) -> None:
        if batch == 1 and os.getpid() != here:
            os.kill(os.getpid(), end)

    spread = ForkedSpread(2, 0.0, stalled=0.2)
    total, seen = spread.lead(lambda given: summed(given, lose))
    assert total == summed(ForkedSpread(2, 0.0))[0]
    assert {process for batch, _, process in seen if batch == 1} == {here}
    for batch in (0, 2, 3, 4):
        assert len({process for number, _, process in seen if number == batch}) == 2
    assert not children()


def test_results_of_other_pieces_are_not_taken() -> None:
    """A copy that asks for something else, for whatever reason, is not believed."""
    here = os.getpid()

    def led(spread: Spread) -> list[int]:
        found: list[int] = []
        for _ in range(3):
            numbers = torch.arange(8) + (0 if os.getpid() == here else 1)
            found += spread(lambda piece: int(piece.sum()), torch.split(numbers, 2))
        return found

    assert ForkedSpread(2, 0.0).lead(led) == led(ALONE)
    assert not children()


def test_an_error_here_ends_all_copies() -> None:
    here = os.getpid()

    def led(spread: Spread) -> None:
        for batch in range(3):
            list(spread(lambda piece: int(piece.sum()), torch.split(torch.arange(8), 2)))
            if batch == 1 and os.getpid() == here:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ForkedSpread(2, 0.0).lead(led)
    assert not children()


def test_copies_end_when_the_first_process_is_killed() -> None:
    """Also in the middle of a piece."""
    reading, writing = os.pipe()

    def work(piece: torch.Tensor) -> int:
        os.write(writing, f"{os.getpid()} ".encode())
        time.sleep(60)
        return 0

    def first(connection: object) -> None:
        pieces = torch.split(torch.arange(4), 2)
        ForkedSpread(2, 0.0).lead(lambda spread: list(spread(work, pieces)))

    process = fork(first, [], 1)
    said = b""
    while said.count(b" ") < 2:
        said += os.read(reading, 100)
    process.end()
    numbers = [int(number) for number in said.split()]
    for _ in range(500):
        if not any(map(_alive, numbers)):
            break
        time.sleep(0.01)
    assert not any(map(_alive, numbers))
    os.close(reading)
    os.close(writing)


def _alive(number: int) -> bool:
    try:
        about = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return about.rpartition(")")[2].split()[0] not in "ZX"
