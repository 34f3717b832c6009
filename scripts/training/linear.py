"""Affine forms of the network at a batch of inputs, and interval bounds for a batch of boxes."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.architectures import Residual

_ENTRIES = 100_000_000  # of the gradients held at once, in float32


def weighted(layer: nn.Module, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply the layer with another weight and bias in place of its own."""
    if isinstance(layer, nn.Linear):
        return functional.linear(x, weight, bias)
    if isinstance(layer, nn.Conv2d):
        return functional.conv2d(x, weight, bias, layer.stride, layer.padding)
    raise TypeError(f"no affine form for {type(layer).__name__}")


def samples_at_once(model: nn.Sequential, x: Tensor) -> int:
    """The number of samples like x [1, ...] that `affine_forms` may take at once."""
    values, size = 0, x.numel()
    with torch.no_grad():
        for layer in model:
            x = layer(x)
            values += x.numel()
    return max(1, _ENTRIES // (size * values))


def affine_forms(model: nn.Sequential, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """For each ReLU layer, then the output: value [batch, n] and gradient [batch, n, inputs].

    A column of the gradient is the image of a unit vector under the network's linear part in
    the region of x, so all columns are propagated together as one larger batch.
    """
    batch, inputs = len(x), x[0].numel()
    columns = torch.eye(inputs).reshape(inputs, *x.shape[1:])
    columns = columns.repeat(batch, *[1] * (x.dim() - 1))  # [batch * inputs, ...]
    x, columns = yield from _forms_through(model, x, columns, inputs)
    yield x, _rows(columns, batch, inputs)


def _forms_through(
    model: nn.Sequential, x: Tensor, columns: Tensor, inputs: int
) -> Generator[tuple[Tensor, Tensor], None, tuple[Tensor, Tensor]]:
    """Yields the forms of each ReLU layer; returns the values and columns after the last layer."""
    for layer in model:
        if isinstance(layer, nn.ReLU):
            yield x.flatten(1), _rows(columns, len(x), inputs)
            on = (x > 0).to(x.dtype)  # [batch, ...]
            x = x * on
            columns = columns * on.repeat_interleave(inputs, 0)
        elif isinstance(layer, nn.Flatten):
            x, columns = x.flatten(1), columns.flatten(1)
        elif isinstance(layer, Residual):
            first = yield from _forms_through(layer.body, x, columns, inputs)
            second = yield from _forms_through(layer.shortcut, x, columns, inputs)
            x, columns = first[0] + second[0], first[1] + second[1]
        elif isinstance(layer, nn.Linear | nn.Conv2d):
            x = layer(x)
            columns = weighted(layer, columns, layer.weight, None)
        else:
            raise TypeError(f"no affine form for {type(layer).__name__}")
    return x, columns


def _rows(columns: Tensor, batch: int, inputs: int) -> Tensor:
    return columns.reshape(batch, inputs, -1).transpose(1, 2)  # [batch, n, inputs]


def interval_bounds(
    model: nn.Sequential, lower: Tensor, upper: Tensor
) -> Generator[tuple[Tensor, Tensor], None, tuple[Tensor, Tensor]]:
    """Yields lower and upper bounds [batch, n] on the inputs of each ReLU layer, for a batch of
    boxes; returns the bounds after the last layer."""
    for layer in model:
        if isinstance(layer, nn.ReLU):
            yield lower.flatten(1), upper.flatten(1)
            lower, upper = lower.relu(), upper.relu()
        elif isinstance(layer, nn.Flatten):
            lower, upper = lower.flatten(1), upper.flatten(1)
        elif isinstance(layer, Residual):
            first = yield from interval_bounds(layer.body, lower, upper)
            second = yield from interval_bounds(layer.shortcut, lower, upper)
            lower, upper = first[0] + second[0], first[1] + second[1]
        elif isinstance(layer, nn.Linear | nn.Conv2d):
            middle = layer((lower + upper) / 2)
            radius = weighted(layer, (upper - lower) / 2, layer.weight.abs(), None)
            lower, upper = middle - radius, middle + radius
        else:
            raise TypeError(f"no interval bounds for {type(layer).__name__}")
    return lower, upper
