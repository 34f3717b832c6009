"""The original network as onnxruntime runs it, which confirms counterexamples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, ValueInfoProto

from fgp_vnn.base.errors import UnsupportedError, one_line
from fgp_vnn.base.program import open_program

Floats = npt.NDArray[np.float32]


class Program(ABC):
    """The original network in float32, which confirms counterexamples."""

    @abstractmethod
    def run(self, x: Floats) -> Floats:
        """The outputs [outputs] at one input x [inputs]."""

    def run_many(self, x: Floats) -> Floats:
        """The outputs [batch, outputs] at x [batch, inputs]."""
        return np.stack([self.run(row) for row in x])


class Runtime(Program):
    """onnxruntime on the CPU, in float32, on the bytes of the file.

    The number of outputs is that of the first run. An input with another number (as NonZero gives
    it) gets outputs that are not numbers, and these break no property.
    """

    def __init__(self, data: bytes, input_shape: tuple[int, ...]) -> None:
        self._program = _open(data)
        self._shape = input_shape
        self._input = self._program.get_inputs()[0].name
        first = (self._program.get_inputs()[0].shape or [1])[0]
        self._outputs: int | None = None
        self._batches = bool(input_shape) and input_shape[0] == 1 and not isinstance(first, int)

    def run(self, x: Floats) -> Floats:
        found = self._run(x.reshape(self._shape)).reshape(-1)
        if self._outputs is None:
            self._outputs = found.size
        return found if found.size == self._outputs else np.full(self._outputs, np.float32(np.nan))

    def output_shape(self) -> tuple[int, ...]:
        """The shape of the outputs at the input 0, with its batch dimension."""
        found = self._run(np.zeros(self._shape, np.float32))
        self._outputs = found.size
        return found.shape

    def run_many(self, x: Floats) -> Floats:
        """The outputs [batch, outputs] at x [batch, inputs], in one run if the batch dimension is
        open. The last bits may then differ from `run`, which computes what the competition's judge
        computes.
        """
        if self._batches and len(x) > 1:
            try:
                result = self._run(x.reshape(len(x), *self._shape[1:]))
                whole = result.shape[:1] == (len(x),)
                if whole and self._outputs in (None, result[0].size):
                    return result.reshape(len(x), -1)
            except UnsupportedError:
                pass
            self._batches = False  # the graph has a literal shape [1, n]
        return super().run_many(x)

    def _run(self, x: Any) -> Floats:
        return _results(self._program, self._input, x)[0]


def open_inside(
    data: bytes, given: Collection[str], names: Sequence[str], shape: tuple[int, ...]
) -> Callable[[Floats], list[Floats]]:
    """A function from x [points, inputs] to the values of the named tensors inside a model, each
    [points, entries]; `given` are the model's own outputs.

    Bytes that are appended to a serialised model add outputs to it when both are parsed as one.
    """
    if not names:  # for onnxruntime, no names mean all outputs
        return lambda x: []
    more = [ValueInfoProto(name=name) for name in names if name not in given]
    extension = ModelProto(graph=GraphProto(output=more))
    program = _open(data + extension.SerializeToString(), as_written=True)
    read = program.get_inputs()[0].name

    def run(x: Floats) -> list[Floats]:
        rows = [_results(program, read, row.reshape(shape), list(names)) for row in x]
        columns = zip(*rows, strict=True)
        return [np.stack([value.reshape(-1) for value in column]) for column in columns]

    return run


def _open(data: bytes, *, as_written: bool = False) -> Any:
    try:
        return open_program(data, as_written=as_written)
    except Exception as error:  # onnxruntime has no common base class for its errors
        raise UnsupportedError(f"onnxruntime refuses the network: {one_line(error)}") from error


def _results(program: Any, name: str, x: Any, wanted: list[str] | None = None) -> list[Floats]:
    feed = {name: np.ascontiguousarray(x, dtype=np.float32)}
    try:
        results = program.run(wanted, feed)
    except Exception as error:
        reason = one_line(error)
        raise UnsupportedError(f"onnxruntime cannot run the network: {reason}") from error
    return [np.asarray(result, dtype=np.float32) for result in results]
