"""Run a torch module on an input: its arguments, its output tensors, and the layer that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fgp_vnn.base.errors import InputError, OutOfMemoryError, memory_errors, one_line


@dataclass(frozen=True, eq=False)
class Arguments:
    """The arguments of a module, for one input, and the names of its outputs."""

    values: list[Tensor]
    keywords: tuple[str, ...]  # the names of the arguments; empty if they are positional
    outputs: tuple[str, ...]

    def run(self, module: nn.Module, values: Sequence[Tensor]) -> list[Tensor]:
        """The tensors that a module returns for these values."""
        return [tensor for _, tensor in flat(call(module, self.keywords, values))]


def arguments_of(module: nn.Module, x: Any) -> Arguments:
    """The arguments for one input; `x` may be a batch of inputs along the first axis.

    The first axis is a batch axis if the module also accepts two inputs along it, and returns two
    results. So an image is not mistaken for a batch of rows, and a convolution gets a batch axis.
    """
    keywords = tuple(x) if isinstance(x, Mapping) else ()
    given = list(x.values()) if isinstance(x, Mapping) else list(x) if isinstance(x, tuple) else [x]
    tensors = [_tensor(value) for value in given]
    forms = [[t[:1] if t.dim() else t for t in tensors], [t.unsqueeze(0) for t in tensors], tensors]
    errors: list[_FailedError] = []
    for doubled in (True, False):
        for values in forms:
            try:
                found = _outputs(module, keywords, values, doubled=doubled)
            except _FailedError as error:
                errors.append(error)
                continue
            if found:
                return Arguments(values, keywords, found)
    shapes = " and ".join(str(tuple(t.shape)) for t in tensors)
    reached = max(errors, key=lambda error: error.layers)
    raise InputError(f"the torch module does not run on x of shape {shapes}: {reached}")


class _FailedError(InputError):
    """Why a module does not run, and how many layers it reached."""

    def __init__(self, message: str, layers: int) -> None:
        super().__init__(message)
        self.layers = layers


def _outputs(
    module: nn.Module, keywords: tuple[str, ...], values: list[Tensor], *, doubled: bool
) -> tuple[str, ...]:
    """The names of the module's outputs; with `doubled`, empty if it cannot take two inputs at
    once."""
    found = flat(_tried(module, keywords, values))
    if not found:
        raise _FailedError("it gives no tensor", 0)
    if doubled:
        both = [torch.cat([v, v]) if v.dim() else v for v in values]
        twice = flat(_tried(module, keywords, both))
        shapes = [(a.shape, b.shape) for (_, a), (_, b) in zip(found, twice, strict=True)]
        if any((a[:1], b[:1], a[1:]) != ((1,), (2,), b[1:]) for a, b in shapes):
            return ()
    return tuple(name for name, _ in found)


def _tried(module: nn.Module, keywords: tuple[str, ...], values: list[Tensor]) -> Any:
    with _watched(module) as (inside, entered), torch.no_grad():
        try:
            with memory_errors():
                return call(module, keywords, values)
        except OutOfMemoryError:
            raise
        except Exception as error:  # whatever a module's own code raises
            where = f"layer {inside[-1]}: " if inside else ""
            raise _FailedError(f"{where}{one_line(error)}", len(entered)) from error


def call(module: nn.Module, keywords: tuple[str, ...], values: Sequence[Tensor]) -> Any:
    """The result of a module for these values of its arguments, by name or by position."""
    if keywords:
        return module(**dict(zip(keywords, values, strict=True)))
    return module(*values)


def _tensor(value: Any) -> Tensor:
    """An array as a tensor on the CPU, in float32 if it is floating-point."""
    try:
        tensor = (
            value.detach().cpu()
            if isinstance(value, Tensor)
            else torch.as_tensor(np.asarray(value))
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"x is not made of numbers: {one_line(error)}") from None
    return tensor.float() if tensor.is_floating_point() else tensor


def flat(result: Any, name: str = "") -> list[tuple[str, Tensor]]:
    """The tensors of a nested result with their names: its keys, its fields, or numbers."""
    if isinstance(result, Tensor):
        return [(name or "output", result)]
    if isinstance(result, Mapping):
        parts = [(str(key), value) for key, value in result.items()]
    elif isinstance(result, list | tuple):
        fields = getattr(result, "_fields", [f"output_{i}" for i in range(len(result))])
        parts = list(zip(map(str, fields), result, strict=True))
    else:
        return []
    prefix = f"{name}." if name else ""
    return [pair for key, value in parts for pair in flat(value, f"{prefix}{key}")]


@contextmanager
def _watched(module: nn.Module) -> Iterator[tuple[list[str], list[str]]]:
    """The layers entered and not yet left, innermost last, and all that were entered."""
    inside: list[str] = []
    entered: list[str] = []
    handles = []

    def enter(described: str) -> None:
        inside.append(described)
        entered.append(described)

    for name, layer in module.named_modules():
        if name and not isinstance(layer, torch.jit.ScriptModule):
            described = f"{name!r} ({type(layer).__name__})"
            handles += [
                layer.register_forward_pre_hook(lambda *_, described=described: enter(described)),
                layer.register_forward_hook(lambda *_: inside.pop() and None),
            ]
    try:
        yield inside, entered
    finally:
        for handle in handles:
            handle.remove()
