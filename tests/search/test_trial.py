"""Which of two ways to bound boxes is kept."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.search.boxes import BoundedBoxes
from fgp_vnn.search.last_boxes import Parts
from fgp_vnn.search.trial import Trial


class Ways:
    """Two ways that close some of 8 boxes, each in some seconds of a clock of their own."""

    def __init__(self, seconds: tuple[float, float], closed: tuple[list[int], list[int]]) -> None:
        self.now, self.calls = 0.0, [0, 0]
        self._seconds, self._closed = seconds, closed

    def way(self, number: int) -> Callable[[], BoundedBoxes]:
        def bound() -> BoundedBoxes:
            self.now += self._seconds[number]
            self.calls[number] += 1
            flags = torch.zeros(8, dtype=torch.bool)
            flags[self._closed[number]] = True
            none = torch.zeros(8, 1)
            parts = Parts(none, none, none.to(torch.int8))
            bounds = LayerBounds((), ())
            return BoundedBoxes(
                flags, none, none.unsqueeze(1), parts, none, none, none > 0, bounds, flags
            )

        return bound

    def run(self, trial: Trial, times: int) -> list[BoundedBoxes]:
        return [trial.bound(self.way(0), self.way(1)) for _ in range(times)]


def kept(seconds: tuple[float, float], closed: tuple[list[int], list[int]]) -> int:
    ways = Ways(seconds, closed)
    ways.run(Trial(4, 64, 1000.0, lambda: ways.now), 20)
    assert sorted(ways.calls)[1] == 20 and sorted(ways.calls)[0] < 20
    return ways.calls.index(20)


def test_the_way_that_closes_more_boxes_is_kept() -> None:
    assert kept((1.0, 1.0), ([0, 1, 2], [0])) == 0
    assert kept((1.0, 1.0), ([0], [0, 1, 2])) == 1


def test_it_has_to_close_more_in_the_same_time() -> None:
    assert kept((3.0, 1.0), ([0, 1, 2, 3], [4, 5])) == 1
    assert kept((1.5, 1.0), ([0, 1, 2, 3], [4, 5])) == 0


def test_of_ways_that_close_the_same_the_faster_one_is_kept() -> None:
    assert kept((2.0, 1.0), ([0, 1], [0, 1])) == 1
    assert kept((1.0, 2.0), ([0, 1], [0, 1])) == 0


def test_as_long_as_both_are_tried_what_either_closes_is_closed() -> None:
    ways = Ways((1.0, 1.0), ([0, 1], [1, 2]))
    found = ways.run(Trial(100, 1000, 1000.0, lambda: ways.now), 1)
    assert found[0].closed.tolist() == [True, True, True, *5 * [False]]


def test_a_way_that_takes_long_is_given_up_soon() -> None:
    ways = Ways((5.0, 0.1), ([0], [0]))
    ways.run(Trial(100, 10_000, 8.0, lambda: ways.now), 10)
    assert ways.calls == [2, 10]


def test_boxes_are_halved_as_the_way_with_the_greater_bounds_says() -> None:
    ways = Ways((1.0, 1.0), ([0], [0]))

    def bound(level: float, pull: float) -> Callable[[], BoundedBoxes]:
        made = ways.way(0)()
        nominal, pulls = torch.full((8, 1), level), torch.full((8, 1), pull)
        return lambda: made._replace(nominal=nominal, pull=pulls)

    for levels, wanted in (((-1.0, -2.0), 3.0), ((-2.0, -1.0), 4.0), ((-torch.inf, -1.0), 4.0)):
        trial = Trial(100, 1000, 1000.0, lambda: ways.now)
        found = trial.bound(bound(levels[0], 3.0), bound(levels[1], 4.0))
        assert bool((found.pull == wanted).all())
