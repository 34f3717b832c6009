"""Linear bounds carried forward: cheap where inputs are few and layers are wide.

Every neuron gets two affine forms of the input, one below it and one above. A map with the weights
W = P + N, P >= 0 >= N, takes the lower forms through P and the upper ones through N to give lower
forms, and the other way round. The cost grows with the number of inputs and not, as that of a
backward pass for each neuron, with the width of the layers; the bounds are looser.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds import LayerBounds, interval_step
from fgp_vnn.domain import Box
from fgp_vnn.network.model import Dense, Network

WORTH_IT = 40  # how many times dearer backward passes have to be


class _Forms(NamedTuple):
    """Affine forms [boxes, inputs + 1, n]: slopes along x - center, then the value there."""

    low: Tensor
    high: Tensor
    error: Tensor  # [boxes, n] how far rounding may have moved either form in the box
    size: Tensor  # [boxes, n] what the terms of either form add up to


def pays(network: Network) -> bool:
    """Whether forms carried forward cost far less than backward passes for all neurons."""
    if not all(isinstance(layer, Dense) for layer in network.layers):
        return False
    below, forward, backward = 0, 0, 0
    for layer in network.layers:
        entries = sum(w.numel() for w in layer.weights) if isinstance(layer, Dense) else 0
        backward += layer.outputs * below
        below += entries
        forward += 4 * (network.inputs + 1) * entries
    return backward > WORTH_IT * forward


class Forward:
    """A network's weights, parted by sign once for all boxes."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._parts: list[tuple[Dense, Dense]] = []
        for layer in network.layers:
            if not isinstance(layer, Dense):
                raise TypeError("forms are carried through matrices only")
            zero = torch.zeros_like(layer.bias)
            positive = tuple(weight.clamp(min=0) for weight in layer.weights)
            negative = tuple(weight.clamp(max=0) for weight in layer.weights)
            pair = (Dense(layer.sources, positive, zero), Dense(layer.sources, negative, zero))
            self._parts.append(pair)

    def bounds(self, box: Box, prior: LayerBounds | None = None) -> LayerBounds:
        """Bounds of every ReLU layer in each box; `prior` are bounds that hold anyway."""
        forms = [_of_input(box)]
        result = LayerBounds((), ())
        for k in range(len(self._network.layers)):
            moved = self._through(k, forms)
            lower, upper = _range(moved, box)
            below, above = interval_step(self._network, box, result, k)
            lower, upper = torch.maximum(lower, below), torch.minimum(upper, above)
            if prior is not None:
                lower = torch.maximum(lower, prior.lower[k])
                upper = torch.minimum(upper, prior.upper[k])
            # What overflowed to NaN is no bound; left as it is, it would pass for a stable neuron.
            lower, upper = lower.nan_to_num(-inf, inf, -inf), upper.nan_to_num(inf, inf, -inf)
            result = LayerBounds((*result.lower, lower), (*result.upper, upper))
            forms.append(_through_relu(moved, lower, upper))
        return result

    def _through(self, k: int, forms: list[_Forms]) -> _Forms:
        layer = self._network.layers[k]
        positive, negative = self._parts[k]
        read = [forms[s] for s in layer.sources]
        both = [torch.cat([form.low, form.high]) for form in read]
        swapped = [torch.cat([form.high, form.low]) for form in read]
        low, high = (positive.linear(both) + negative.linear(swapped)).chunk(2)
        low[:, -1] += layer.bias
        high[:, -1] += layer.bias
        steps = 2 * (2 * layer.operations + 6) * torch.finfo(low.dtype).eps
        size = layer.magnitude([form.size for form in read])
        error = layer.spread([form.error for form in read]) + steps * size
        return _Forms(low, high, error if layer.defect is None else error + layer.defect, size)


def _of_input(box: Box) -> _Forms:
    count, inputs = box.lower.shape
    eye = torch.eye(inputs, dtype=box.lower.dtype, device=box.lower.device)
    forms = torch.cat([eye.expand(count, -1, -1), box.center.unsqueeze(-2)], dim=-2)
    size = torch.maximum(box.lower.abs(), box.upper.abs())
    return _Forms(forms, forms, torch.zeros_like(size), 2 * size)


def _range(forms: _Forms, box: Box) -> tuple[Tensor, Tensor]:
    """The least value of the lower form and the greatest of the upper one, rounding included."""
    radius = box.radius.unsqueeze(-1)
    inputs = box.lower.shape[-1]
    below = (forms.low[:, :-1].abs() * radius).sum(-2)
    above = (forms.high[:, :-1].abs() * radius).sum(-2)
    steps = 2 * (inputs + 8) * torch.finfo(below.dtype).eps
    error = 1.01 * forms.error
    lower = forms.low[:, -1] - below - error - steps * (below + forms.low[:, -1].abs())
    upper = forms.high[:, -1] + above + error + steps * (above + forms.high[:, -1].abs())
    return lower, upper


def _through_relu(forms: _Forms, lower: Tensor, upper: Tensor) -> _Forms:
    """The forms of relu(z): z times a slope in [0, 1] below, the chord above."""
    low_line, chord, intercept = (
        part.squeeze(-2) for part in LayerBounds((lower,), (upper,)).lines()[0]
    )
    low = forms.low * low_line.unsqueeze(-2)
    high = forms.high * chord.unsqueeze(-2)
    high[:, -1] += intercept
    size = forms.size * torch.maximum(low_line, chord) + intercept
    unit = 8 * torch.finfo(low.dtype).eps
    error = forms.error * torch.maximum(low_line, chord) + unit * size
    return _Forms(low, high, error, size)
