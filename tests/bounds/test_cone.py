"""What neurons depend on: no input is missed."""

from __future__ import annotations

import torch

from fgp_vnn.bounds.cone import inputs_read
from fgp_vnn.network.model import Dense, Network
from tests.helpers.random_networks import KINDS, generator, random_network


def thinned(network: Network, seed: int) -> Network:
    """The same with three of four weights set to 0."""
    drawn = generator(seed)

    def thin(affine: Dense) -> Dense:
        weights = tuple(w * (torch.rand(w.shape, generator=drawn) < 0.25) for w in affine.weights)
        return Dense(affine.sources, weights, affine.bias + 1)

    layers = tuple(thin(layer) for layer in network.layers if isinstance(layer, Dense))
    return Network(layers, network.output, network.inputs)


def test_an_input_that_moves_a_neuron_is_read_by_it() -> None:
    for kind in KINDS:
        network = thinned(random_network(1, kind, inputs=6, widths=(5, 4, 3)), 1)
        x = torch.rand(50, 6, generator=generator(2), dtype=network.dtype)
        for target in range(len(network.layers)):
            reads, before = inputs_read(network, target), network.preactivations(x)[target]
            assert not bool(reads.all())
            for i in range(6):
                moved = x.clone()
                moved[:, i] += 1
                changed = (network.preactivations(moved)[target] != before).any(0)
                assert bool((reads[:, i] | ~changed).all())
