"""Linear bounds propagated forward: cheap if inputs are few and layers are wide.

Every neuron gets two affine forms of the input, one below it and one above. For a map with weights
W = P + N, P >= 0 >= N, its lower forms are P times the lower forms plus N times the upper forms of
its sources, and vice versa. The cost grows with the number of inputs instead of the width of the
layers, as a backward pass for each neuron does; the bounds are looser.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, unit
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network


class _Forms(NamedTuple):
    """Affine forms [boxes, inputs + 1, n]: slopes along x - center, then the value at the centre.

    The loss of a slope to underflow is multiplied by the width of its input; `reach`, 1 plus the
    sum of these widths, bounds the effect of all of them.
    """

    low: Tensor
    high: Tensor
    error: Tensor  # [boxes, n] upper bound on the rounding error of either form in the box
    size: Tensor  # [boxes, n] upper bound on the sum of either form's absolute terms
    reach: Tensor  # [boxes, 1]


def pays(network: Network, factor: int) -> bool:
    """Whether backward passes cost more than `factor` times as much as forward propagation."""
    below, forward, backward = 0, 0, 0
    for layer in network.layers:
        if not isinstance(layer, Dense) or not network.piecewise_linear:
            return False
        entries = sum(weight.numel() for weight in layer.weights)
        backward += layer.outputs * below
        below += entries
        forward += 4 * (network.inputs + 1) * entries
    return backward > factor * forward


class Forward:
    """A network's weights, split by sign once for all boxes."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._parts: list[tuple[Dense, Dense]] = []
        if not network.piecewise_linear:
            raise TypeError("forms are carried through ReLUs only")
        for layer in network.layers:
            if not isinstance(layer, Dense):
                raise TypeError("forms are carried through matrices only")
            zero = torch.zeros_like(layer.bias)
            positive = tuple(weight.clamp(min=0) for weight in layer.weights)
            negative = tuple(weight.clamp(max=0) for weight in layer.weights)
            pair = (Dense(layer.sources, positive, zero), Dense(layer.sources, negative, zero))
            self._parts.append(pair)

    def bounds(self, box: Box, prior: LayerBounds | None = None) -> LayerBounds:
        """Bounds of every ReLU layer in each box; `prior` are valid bounds to intersect with."""
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
        size_of, sizes = unit(low.dtype), [form.size for form in read]
        size = layer.magnitude(sizes)
        error = layer.spread([form.error for form in read]) * size_of.grow(layer.operations + 4)
        error = error + size_of.share(layer.operations + 4) * size
        error = error + size_of.underflow * (layer.underflows(sizes).forward + 4) * forms[0].reach
        if layer.defect is not None:
            error = error + size_of.grow(4) * layer.defect
        return _Forms(low, high, error, size, forms[0].reach)


def _of_input(box: Box) -> _Forms:
    count, inputs = box.lower.shape
    eye = torch.eye(inputs, dtype=box.lower.dtype, device=box.lower.device)
    forms = torch.cat([eye.expand(count, -1, -1), box.center.unsqueeze(-2)], dim=-2)
    size = box.sizes
    reach = 1 + (box.upper - box.lower).sum(-1, keepdim=True)
    return _Forms(forms, forms, torch.zeros_like(size), 2 * size, reach)


def _range(forms: _Forms, box: Box) -> tuple[Tensor, Tensor]:
    """Minimum of the lower form and maximum of the upper form, widened by the rounding error."""
    sides, size_of = [], unit(forms.low.dtype)
    share = size_of.share(box.lower.shape[-1] + 14)  # for a support and four sums
    error = size_of.grow(4) * forms.error + 8 * size_of.underflow
    for form, sign in ((forms.low, -1), (forms.high, 1)):
        reach = box.support(form[:, :-1].transpose(-1, -2))
        value = form[:, -1]
        sides.append(value + sign * (reach + error + share * (reach + value.abs())))
    return below(sides[0]), above(sides[1])


def _through_relu(forms: _Forms, lower: Tensor, upper: Tensor) -> _Forms:
    """The forms of relu(z): z times a slope in [0, 1] below, the chord above."""
    low_line, chord, intercept = (
        part.squeeze(-2) for part in LayerBounds((lower,), (upper,)).lines()[0][:3]
    )
    low = forms.low * low_line.unsqueeze(-2)
    high = forms.high * chord.unsqueeze(-2)
    high[:, -1] += intercept
    # Roundings: two of a slope, a product and a sum; a line has three roundings of its own.
    size_of, steepest = unit(low.dtype), torch.maximum(low_line, chord)
    size = forms.size * steepest + intercept
    error = size_of.grow(4) * forms.error * steepest + size_of.share(8) * size
    return _Forms(low, high, error + 8 * size_of.underflow * forms.reach, size, forms.reach)
