"""Second-order forms (see `curved_forms`) propagated forward through a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.curved_forms import (
    Forms,
    of_input,
    quadratic,
    through,
    through_map,
    through_relu,
)
from fgp_vnn.bounds.quadratics import Shape
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.activations.bends import bend_of
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network


class Carried(NamedTuple):
    """The forms of the outputs in a batch of boxes, and statistics for choosing a split."""

    flat: Tensor  # [boxes, rows, 1 + s] constant and linear coefficients
    bend: Tensor  # [boxes, bent rows + 1, pairs + products]; the last is 0, for all other rows
    error: Tensor  # [boxes, rows]
    signs: Tensor  # [boxes, neurons] int8: of stable ReLUs, else 0
    moved: Tensor  # [boxes, inputs, symbols] how far each input moves the ReLU of each symbol
    blame: Tensor  # [boxes, inputs] approximate share of each input in the errors


def applies(network: Network, inputs: int, relus: int) -> bool:
    """Whether second-order forms can be used: a network of dense matrices with at most `inputs`
    inputs, some layer with quadratic terms, and at most `relus` ReLUs before the first layer of
    other activations."""
    curved = any(quadratic(f) or bend_of(f) for f in network.activations)
    few = network.inputs <= inputs and sum(network.widths[: _first_bend(network)]) <= relus
    return curved and few and all(map(_dense, network.maps))


def _first_bend(network: Network) -> int:
    """Index of the first layer that is not a ReLU layer."""
    relus = [activation is RELU for activation in network.activations]
    return relus.index(False) if False in relus else len(relus)


def _dense(affine: AffineMap) -> bool:
    return isinstance(affine.inner if isinstance(affine, Combination) else affine, Dense)


class SecondOrder:
    """Propagates second-order forms forward through a network.

    Each ReLU before the first other layer gets a symbol. From that layer on only `symbols` of them
    are kept: those with the largest coefficients in the values that later layers read. Later ReLUs
    get none.
    """

    def __init__(self, network: Network, symbols: int) -> None:
        if network.dtype != torch.float64:
            raise TypeError("forms add up rounding errors over the layers: too many for float32")
        self._network = network
        self._first = _first_bend(network)
        before = sum(network.widths[: self._first])
        self._wide = Shape(network.inputs, before, network.device)
        self.shape = Shape(network.inputs, min(symbols, before), network.device)
        self.bent = torch.nonzero(_bent(network)).flatten()
        self._bent_output = network.output.select(self.bent)
        # The forms of other functions may be much wider than the ranges of these functions.
        self._spans = not all(f is RELU or quadratic(f) for f in network.activations)
        self._later = {s for affine in network.maps[self._first :] for s in affine.sources}

    @property
    def columns(self) -> int:
        """Largest number of coefficients of a form."""
        return max(self._wide.flat, self.shape.columns)

    def rows(self, box: Box, signs: Tensor) -> Carried:
        """The forms of the outputs in boxes [boxes, inputs], given the signs [boxes, neurons] of
        ReLUs that are known to be stable."""
        network, shape = self._network, self._wide
        known = torch.split(signs, list(network.widths), -1)
        forms, found, moved = (
            [of_input(box, shape, spans=self._spans)],
            [signs[:, :0]],
            list[Tensor](),
        )
        begin, chosen, blame = 1 + shape.inputs, signs[:, :0].long(), torch.zeros_like(box.lower)
        for k, (layer, activation) in enumerate(
            zip(network.layers, network.activations, strict=True)
        ):
            if k == self._first:
                forms, chosen = self._reduced(forms)
                shape = self.shape
            z = through_map(layer, [forms[s] for s in layer.sources], shape)
            along = z.flat[:, 1 : 1 + shape.inputs].abs()
            if activation is not RELU:
                forms.append(through(activation, z, shape))
                blame = blame + _blame(activation, along, forms[-1].error)
                found.append(torch.zeros_like(known[k]))
                continue
            slots = slice(begin, begin + layer.outputs) if k < self._first else None
            begin += layer.outputs
            a, stable = through_relu(z, known[k], slots, shape)
            forms.append(a)
            found.append(stable)
            moved.append(along)
            if slots is None:
                blame = blame + _blame(activation, along, a.error)
        flat, bend, error = self._outputs(forms)
        early = torch.cat([box.lower.unsqueeze(-1)[..., :0], *moved], -1)
        index = chosen.unsqueeze(1).expand(-1, shape.inputs, -1)
        at = torch.cat(found, -1), early.gather(-1, index), blame
        return Carried(flat, bend, error, *at)

    def _reduced(self, forms: Sequence[Forms]) -> tuple[list[Forms], Tensor]:
        """The forms with fewer symbols, and the indices [boxes, symbols] of those kept; dropped
        symbols go into the error."""
        begin, size_of = 1 + self.shape.inputs, unit(self._network.dtype)
        wanted = [forms[s].flat[:, begin:].abs() for s in self._later if s < len(forms)]
        effect = torch.stack([part.sum(-1) for part in wanted]).sum(0)
        chosen = effect.topk(self.shape.symbols, -1).indices
        result = list[Forms]()
        for form in forms:
            flat = form.flat
            index = chosen.unsqueeze(-1).expand(-1, -1, flat.shape[-1])
            symbols = flat[:, begin:]
            dropped = symbols.abs().scatter(1, index, 0.0).sum(1)
            dropped = size_of.grow(self._wide.symbols + 2) * (form.error + dropped)
            flat = torch.cat([flat[:, :begin], symbols.gather(1, index)], 1)
            result.append(Forms(flat, form.bend, dropped, form.span))
        return result, chosen

    def _outputs(self, forms: Sequence[Forms]) -> tuple[Tensor, Tensor, Tensor]:
        shape, output = self.shape, self._network.output
        read = [forms[s] for s in output.sources]
        y = through_map(output, read, shape, self._bent_output)
        flat = y.flat.transpose(-1, -2)
        last = flat.new_zeros(len(flat), 1, shape.columns - shape.flat)
        bend = last if y.bend is None else torch.cat([y.bend.transpose(-1, -2), last], 1)
        return flat, bend, y.error


def _blame(activation: Activation, along: Tensor, error: Tensor) -> Tensor:
    """Attribute the errors [boxes, n] of a layer's values to the inputs [boxes, inputs], in
    proportion to how far each input moves each neuron, `along` [boxes, inputs, width]."""
    operands = activation.expand(along)
    parts = operands.reshape(*along.shape[:2], -1, error.shape[-1]).sum(2)
    shares = parts / parts.sum(1, keepdim=True).clamp(min=1e-300)
    return (shares @ error.unsqueeze(-1)).squeeze(-1).nan_to_num(0.0, 0.0, 0.0)


def _bent(network: Network) -> Tensor:
    """Which outputs read a value that may have quadratic terms."""
    bent = [False]
    for layer, activation in zip(network.layers, network.activations, strict=True):
        bent.append(activation is not RELU or any(bent[s] for s in layer.sources))
    found = torch.zeros(network.outputs, dtype=torch.bool, device=network.device)
    for source, reads in zip(network.output.sources, _reads(network.output), strict=True):
        if bent[source]:
            found |= reads.any(-1)
    return found


def _reads(affine: AffineMap) -> tuple[Tensor, ...]:
    """Which values of each source each output depends on, [outputs, n_s]."""
    if isinstance(affine, Combination):
        rows = (affine.rows != 0).double()
        return tuple(rows @ part.double() > 0 for part in _reads(affine.inner))
    if not isinstance(affine, Dense):
        raise TypeError("forms are carried through matrices only")
    return tuple(weight != 0 for weight in affine.weights)
