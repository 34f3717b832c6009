"""Export a torch module to ONNX in memory by either of torch's exporters, without their output."""

from __future__ import annotations

import ctypes
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.jit._trace import TracerWarning

from fgp_vnn.base.errors import OutOfMemoryError, UnsupportedError, memory_errors, one_line
from fgp_vnn.base.program import open_program
from fgp_vnn.base.words import plural
from fgp_vnn.network.onnx.runs import Arguments, call, flat


@dataclass(frozen=True, eq=False)
class Exported:
    """An ONNX model, and the names of its inputs in the order of a module's arguments."""

    content: bytes

    @cached_property
    def _program(self) -> Any:
        return open_program(self.content)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in the order of the module's arguments."""
        return [value.name for value in self._program.get_inputs()]

    def named(self, values: Sequence[Tensor]) -> dict[str, Any]:
        """The arguments' values by the names of the inputs."""
        if len(self.inputs) != len(values):
            raise UnsupportedError(
                f"the exported network has {plural(len(self.inputs), 'input')}, "
                f"the module {len(values)}"
            )
        return {n: v.numpy() for n, v in zip(self.inputs, values, strict=True)}

    def run(self, values: Sequence[Tensor]) -> list[Any]:
        """The outputs of onnxruntime for these values."""
        return [np.asarray(y) for y in self._program.run(None, self.named(values))]


def export(module: nn.Module, arguments: Arguments) -> Exported:
    """The ONNX model of a module.

    The exporter that traces is quick and needs no other package, but it records only one path
    through the code. If it warns that there may be others, or fails, torch.export is tried.
    """
    several = arguments.keywords or len(arguments.outputs) > 1
    flattened = _Flat(module, arguments) if several else module
    values = tuple(arguments.values)
    names = list(arguments.outputs)
    try:
        with memory_errors():
            return Exported(_traced(flattened, values, arguments))
    except OutOfMemoryError:
        raise
    except Exception as error:  # whatever tracing a module can raise
        reason = one_line(error)
    if find_spec("onnxscript") is not None:
        # The errors of torch.export and onnxscript are long, and say less than the first reason.
        with suppress(Exception):
            return Exported(_by_torch_export(flattened, values, names))
    layer = _failing(module, arguments)
    where = f": layer {layer}" if layer else ""
    raise UnsupportedError(f"the torch module cannot be exported to ONNX{where}: {reason}")


class _Flat(nn.Module):
    """A module that takes positional arguments and returns a tuple of tensors."""

    def __init__(self, module: nn.Module, arguments: Arguments) -> None:
        super().__init__()
        self.module = module
        self._keywords = arguments.keywords

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor for _, tensor in flat(call(self.module, self._keywords, values)))


def _traced(module: nn.Module, values: tuple[Tensor, ...], arguments: Arguments) -> bytes:
    """Export by tracing; raises if the trace may be wrong."""
    content = io.BytesIO()
    names = arguments.keywords or [f"input_{i}" for i in range(len(values))]
    with silence() as heard:
        torch.onnx.export(
            module,
            values,
            content,  # type: ignore[arg-type]  # a file is allowed too
            dynamo=False,
            input_names=list(names) if len(values) > 1 else None,
            output_names=list(arguments.outputs) if len(arguments.outputs) > 1 else None,
        )
    doubts = [w for w in heard if issubclass(w.category, TracerWarning)]
    if doubts:
        said = one_line(str(doubts[0].message)).partition(". ")[0]
        raise UnsupportedError(f"its code may depend on the values of x ({said})")
    return content.getvalue()


def _by_torch_export(module: nn.Module, values: tuple[Tensor, ...], names: list[str]) -> bytes:
    """Export by torch.export, which proves that there is only one path through the code."""
    several = names if len(names) > 1 else None
    with silence():
        program = torch.onnx.export(
            module, values, dynamo=True, verbose=False, output_names=several
        )
    assert program is not None
    content: bytes = program.model_proto.SerializeToString()
    return content


def _failing(module: nn.Module, arguments: Arguments) -> str:
    """The first innermost layer that cannot be exported by itself; empty if all can be."""
    seen: list[tuple[str, nn.Module, tuple[Any, ...]]] = []
    handles = [
        layer.register_forward_pre_hook(
            lambda layer, given, name=name: seen.append((name, layer, given))
        )
        for name, layer in module.named_modules()
        if name and not any(layer.children()) and not isinstance(layer, torch.jit.ScriptModule)
    ]
    try:
        with torch.no_grad():
            arguments.run(module, arguments.values)
    finally:
        for handle in handles:
            handle.remove()
    for name, layer, given in seen:
        try:
            _traced(layer, given, Arguments(list(given), (), ("output",)))
        except Exception:  # this layer cannot be exported
            return f"{name!r} ({type(layer).__name__})"
    return ""


@contextmanager
def silence() -> Iterator[list[warnings.WarningMessage]]:
    """Hide what exporters print, warn and log from the user; yields the list of warnings."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # earlier output is not the exporter's
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(record=True) as heard,
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
            _discarded_output(),
        ):
            warnings.simplefilter("always")
            yield heard
    finally:
        logging.disable(before)


@contextmanager
def _discarded_output() -> Iterator[None]:
    """Discard what torch prints from C++; its buffer is flushed before the streams are restored."""
    kept = {}
    for number in (1, 2):
        with suppress(OSError):  # it is closed already
            kept[number] = os.dup(number)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        with suppress(OSError, AttributeError, TypeError):  # no C library by that name
            ctypes.CDLL(None).fflush(None)
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
