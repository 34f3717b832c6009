"""Groups of neurons that read nearly the same inputs."""

from __future__ import annotations

import torch

from fgp_vnn.bounds.cone import neighbours


def bands(count: int, width: int) -> torch.Tensor:
    """What each neuron of a convolution in one dimension reads."""
    places = torch.arange(count + width - 1)
    begin = torch.arange(count).unsqueeze(-1)
    return (places >= begin) & (places < begin + width)


def test_each_neuron_is_in_one_group() -> None:
    for most, growth in ((1, 2.0), (4, 1.0), (4, 2.0), (100, 3.0), (100, 100.0)):
        found = torch.cat(neighbours(bands(20, 5), most, growth))
        assert sorted(found.tolist()) == list(range(20))


def test_a_group_reads_at_most_a_multiple_of_what_its_first_neuron_reads() -> None:
    reads = bands(30, 6)
    groups = neighbours(reads, 100, 2.0)
    assert all(int(reads[group].any(0).sum()) <= 12 for group in groups)
    assert len(groups) == 5  # of seven neurons each, as far as there are so many
    assert all(len(group) <= 3 for group in neighbours(reads, 3, 2.0))


def test_neurons_that_read_the_same_are_together_and_strangers_apart() -> None:
    reads = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]).bool()
    assert [group.tolist() for group in neighbours(reads, 4, 1.5)] == [[0, 2], [1, 3]]


def test_a_neuron_that_reads_nothing_is_in_a_group_too() -> None:
    groups = neighbours(torch.zeros(3, 4, dtype=torch.bool), 8, 2.0)
    assert [group.tolist() for group in groups] == [[0, 1, 2]]
