"""The size of batches on a device, against a clock that is set by the test."""

from __future__ import annotations

import torch

from fgp_vnn.search.pace import Pace

GPU = torch.device("meta")  # any device but the CPU


def sizes(device: torch.device, fit: int, seconds: dict[int, float], batches: int) -> list[int]:
    """The sizes of batches that take so many seconds each."""
    now = [0.0]
    pace = Pace(256, fit, device, lambda: now[0])
    seen = []
    for _ in range(batches):
        seen.append(pace.size)
        pace.begin()
        now[0] += seconds[pace.size]
        pace.end(pace.size)
    return seen


def test_on_a_cpu_the_size_stays_what_it_is() -> None:
    assert sizes(torch.device("cpu"), 10_000, {256: 1.0}, 4) == [256] * 4
    assert sizes(torch.device("cpu"), 100, {100: 1.0}, 2) == [100] * 2


def test_on_a_device_it_is_doubled_as_long_as_that_pays() -> None:
    seconds = {256: 1.0, 512: 1.0, 1024: 1.1, 2048: 2.2}
    assert sizes(GPU, 10_000, seconds, 7) == [256, 256, 512, 1024, 2048, 2048, 2048]


def test_it_never_takes_more_memory_than_there_is() -> None:
    seconds = {256: 1.0, 512: 1.0, 700: 1.0}
    assert sizes(GPU, 700, seconds, 6) == [256, 256, 512, 700, 700, 700]


def test_a_batch_that_is_not_full_says_nothing() -> None:
    pace = Pace(256, 10_000, GPU, lambda: 0.0)
    for _ in range(5):
        pace.begin()
        assert pace.end(100) == 256
