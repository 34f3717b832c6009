"""Whether the usual sides of a bundle's neurons are clipped or many more: what gains more."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.search import clip_bundles
from fgp_vnn.search.best_first import Visited
from fgp_vnn.search.bundles import BundleContext, bound
from fgp_vnn.search.clip_bundles import BundleClipper
from fgp_vnn.search.clipped_neurons import Clipping, clip_neurons, promised
from fgp_vnn.search.waiting_bounds import with_waiting
from fgp_vnn.strategy import Neurons
from tests.search.test_clipped_neurons import example


def visited_ones(looks: bool = True, size: float = 0.25) -> tuple[BundleContext, Visited]:
    """Bundles of which some are open and some closed, or all are open if they are larger."""
    _, context, bundles = example("linf", 3, size)
    context = replace(context, ascent=replace(context.ascent, looks=looks))
    bounded = bound(context, bundles)
    level = bounded.result.least.squeeze(-1)
    closed = level > 0
    assert not bool(closed.all()) and bool(closed.any()) == (size < 0.3)
    return context, Visited(bounded, level, closed, {})


def clipper(context: BundleContext, **numbers: object) -> BundleClipper:
    """Of one side or of all, tried at once and on few bundles."""
    few = Neurons(near=1e9, low=0, costly=1e-9, thorough=(1.0, 256), trial=(0, 1), worth=1.0)
    clipping = Clipping.of(context, replace(few, **numbers))  # type: ignore[arg-type]
    assert clipping is not None
    return BundleClipper(clipping)


def narrowed(visited: Visited) -> int:
    """How many sides of neurons have tighter bounds than before."""
    bounds, held = visited.bounded.bounds, visited.held
    low, high = (torch.cat(side, -1) for side in (bounds.lower, bounds.upper))
    return int((held["lower"] > low + 1e-6).sum() + (held["upper"] < high - 1e-6).sum())


@pytest.mark.parametrize(("worth", "thorough"), [(1.0, True), (1e9, False)])
def test_what_gains_enough_in_the_trial_is_done_from_then_on(worth: float, thorough: bool) -> None:
    context, visited = visited_ones()
    usual = narrowed(clipper(context, trial=(0, 0)).clip(context, visited))
    every = narrowed(clipper(context, trial=(0, 0), costly=1.0).clip(context, visited))
    assert 0 < usual < every
    learning = clipper(context, worth=worth)
    assert narrowed(learning.clip(context, visited)) >= every
    assert learning.gains[1] > learning.gains[0] > 0
    assert narrowed(learning.clip(context, visited)) == (every if thorough else usual)


def test_the_second_clipping_starts_from_the_bounds_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, visited = visited_ones()
    given, found = list[Tensor](), list[Tensor]()

    def spy(context: BundleContext, clipping: Clipping, bounded: object, at: Tensor) -> object:
        upper = torch.cat(bounded.bounds.upper, -1)  # type: ignore[attr-defined]
        given.append(upper[at])
        low, high = clip_neurons(context, clipping, bounded, at)  # type: ignore[arg-type]
        found.append(high)
        return low, high

    monkeypatch.setattr(clip_bundles, "clip_neurons", spy)
    clipper(context).clip(context, visited)
    assert len(given) == 2 and bool((found[0] < given[0] - 1e-6).any())
    torch.testing.assert_close(given[1], found[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [0.25, 0.3])
def test_a_gain_is_what_is_promised_and_at_most_what_is_lacking(size: float) -> None:
    context, visited = visited_ones(size=size)
    one = clipper(context, costly=1.0)
    after = one.clip(context, visited)
    at = torch.nonzero(~visited.closed).flatten()
    lacks, bounds = -visited.level[at], with_waiting(context, after.held).bounds
    rise = promised(visited.bounded, bounds, at)
    assert one.gains[1] == pytest.approx(float(torch.minimum(rise, lacks).sum()))
    assert bool((rise > lacks).any()) == (size == 0.25) and bool((rise < lacks).any())


def test_a_bundle_that_is_closed_by_clipping_has_gained_all_that_it_lacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, visited = visited_ones(size=0.3)

    def empty(context: BundleContext, clipping: Clipping, bounded: object, at: Tensor) -> object:
        low, high = clip_neurons(context, clipping, bounded, at)  # type: ignore[arg-type]
        low[0, 0] = high[0, 0] + 1  # the first bundle holds no counterexample
        return low, high

    plain = clipper(context)
    plain.clip(context, visited)
    monkeypatch.setattr(clip_bundles, "clip_neurons", empty)
    closing = clipper(context)
    after = closing.clip(context, visited)
    assert after.closed.tolist() == [True] + [False] * (len(after.closed) - 1)
    assert bool((after.held["lower"] <= after.held["upper"]).all())
    gained = closing.gains[0] - plain.gains[0]
    assert 0 < gained <= -float(visited.level[0]) * (1 + 1e-9)
    assert closing.gains[0] >= -float(visited.level[0])


def test_later_gains_weigh_twice_as_much() -> None:
    context, visited = visited_ones()
    learning = clipper(context, trial=(0, 1000))
    learning.clip(context, visited)
    first = learning.gains
    learning.clip(context, visited)
    assert learning.gains == pytest.approx([1.5 * gain for gain in first]) and first[0] > 0


def test_a_short_search_tries_nothing() -> None:
    context, visited = visited_ones()
    count = int((~visited.closed).sum())
    waiting = clipper(context, trial=(count, 1))
    waiting.clip(context, visited)
    assert waiting.gains == (0.0, 0.0) and (waiting.seen, waiting.tried) == (count, 0)
    waiting.clip(context, visited)
    assert waiting.gains[1] > 0 and (waiting.seen, waiting.tried) == (2 * count, count)


def test_a_device_that_is_not_asked_tries_nothing() -> None:
    context, visited = visited_ones(looks=False)
    blind = clipper(context)
    blind.clip(context, visited)
    blind.clip(context, visited)
    assert blind.gains == (0.0, 0.0)


def test_what_is_closed_or_far_from_it_stays_as_it_was() -> None:
    context, visited = visited_ones()
    after = clipper(context).clip(context, visited)
    closed = visited.closed
    assert bool(after.closed[closed].all())
    bounds = visited.bounded.bounds
    upper = torch.cat(bounds.upper, -1)[closed]
    torch.testing.assert_close(after.held["upper"][closed].double(), upper, rtol=1e-6, atol=1e-6)
    far = clipper(context, near=0.0)
    assert narrowed(far.clip(context, visited)) == 0 and far.seen == 0
    every = clipper(context, near=0.0, low=4)  # of few inputs: wherever a bundle is open
    assert narrowed(every.clip(context, visited)) > 0 and every.seen == int((~closed).sum())
