"""RNN, GRU and LSTM, one step after the other: affine maps, gates and products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Array, label, make_node
from fgp_vnn.network.onnx.writer import Writer

_USUAL = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}
_OPERANDS = 8  # those that a file leaves out have no name


def recurrent(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """The hidden states [steps, directions, batch, hidden]; the last ones go to further outputs."""
    operands = [*map(str, node.input), *[""] * _OPERANDS][:_OPERANDS]
    _check(w, node, given, operands)
    steps = w.shape(operands[0])[0]
    backwards = {b"reverse": [True], b"bidirectional": [False, True]}
    ways = backwards.get(given.get("direction", b"forward"), [False])
    ends: list[list[str]] = [[], []]  # the last hidden and inner states of all directions
    states: list[list[str]] = [[] for _ in range(steps)]
    for number, back in enumerate(ways):
        cell = _Cell.of(w, node, given, operands, number)
        hidden, inner = (_start(w, operands[i], number) for i in (5, 6))
        for step in reversed(range(steps)) if back else range(steps):
            at = np.asarray(step, dtype=np.int64)
            x = w.put("Gather", operands[0], at, shape=w.shape(operands[0])[1:], axis=0)
            hidden, inner = cell.step(x, hidden, inner)
            states[step].append(hidden)
        for end, state in zip(ends, (hidden, inner), strict=True):
            end.extend([] if state is None else [state])
    for output, parts in zip(node.output[1:], ends, strict=False):
        if output:
            last = _stacked(w, parts, w.graph.shape(output))
            w.nodes.append(make_node("Identity", [last], output))
    every = [state for step in states for state in step]
    return _stacked(w, every, (steps, len(ways), *w.shape(every[0])))


def _check(w: Writer, node: NodeProto, given: dict[str, Any], operands: list[str]) -> None:
    """Refuse what is written out in no other way than the usual one."""
    functions = [name.decode() for name in given.get("activations", [])]
    ways = 2 if given.get("direction") == b"bidirectional" else 1
    usual = functions in ([], ways * _USUAL[node.op_type])
    odd = given.get("clip") or given.get("input_forget") or given.get("layout")
    constant = all(name in w.graph.constants for name in operands[1:4] if name)
    started = any(w.graph.constants[n].any() for n in operands[5:7] if n in w.graph.constants)
    rectified = node.op_type == "RNN" and functions == ways * ["Relu"]
    odd = odd or operands[4] or operands[7] or started
    if odd or not constant or not (usual or rectified):
        raise UnsupportedError(f"{label(node)} has an unusual form, which is not supported")


def _start(w: Writer, name: str, number: int) -> str | None:
    """The state that a direction begins with; None: 0."""
    if not name or name in w.graph.constants:
        return None
    at = np.asarray(number, dtype=np.int64)
    return w.put("Gather", name, at, shape=w.shape(name)[1:], axis=0)


def _stacked(w: Writer, parts: list[str], shape: tuple[int, ...]) -> str:
    """States [batch, hidden] in a row, in a shape that begins with as many."""
    if len(parts) == 1:
        return w.reshape(parts[0], shape)
    batch, hidden = w.shape(parts[0])
    joined = w.put("Concat", *parts, shape=(len(parts) * batch, hidden), axis=0)
    return w.reshape(joined, shape)


@dataclass(frozen=True)
class _Cell:
    """One direction: weights [gates hidden, inputs], [gates hidden, hidden], and two offsets."""

    w: Writer
    kind: str
    size: int
    read: Array
    fed: Array
    offsets: tuple[Array, Array]
    function: str  # of an RNN
    resets_last: bool  # a GRU multiplies what its matrix gives, not what it reads

    @classmethod
    def of(
        cls, w: Writer, node: NodeProto, given: dict[str, Any], operands: list[str], number: int
    ) -> _Cell:
        read, fed = (w.graph.constants[name][number] for name in operands[1:3])
        size = fed.shape[1]
        both = np.zeros(2 * len(read))
        if operands[3]:
            both = w.graph.constants[operands[3]][number]
        function = next(iter(given.get("activations", [])), b"Tanh").decode()
        resets_last = bool(given.get("linear_before_reset", 0))
        offsets = (both[: len(read)], both[len(read) :])
        return cls(w, node.op_type, size, read, fed, offsets, function, resets_last)

    def step(self, x: str, hidden: str | None, inner: str | None) -> tuple[str, str | None]:
        """The next hidden and inner state."""
        seen = self._affine(x, self.read, self.offsets[0])
        if self.kind == "GRU":
            return self._gru(seen, hidden), None
        every = self._fed(seen, hidden, slice(None))
        if self.kind == "RNN":
            return self.w.curve(self.function, every), None
        entry, out, forget, new = (self._part(every, gate) for gate in range(4))
        entry, out, forget = (self.w.curve("Sigmoid", gate) for gate in (entry, out, forget))
        found = self.w.multiply(entry, self.w.curve("Tanh", new))
        if inner is not None:
            found = self.w.add(self.w.multiply(forget, inner), found)
        return self.w.multiply(out, self.w.curve("Tanh", found)), found

    def _gru(self, seen: str, hidden: str | None) -> str:
        w, last = self.w, slice(2 * self.size, None)
        parts = [self._part(seen, gate) for gate in range(3)]
        keep, reset = (
            w.curve("Sigmoid", self._fed(parts[gate], hidden, self._rows(gate))) for gate in (0, 1)
        )
        if self.resets_last:
            fed = None if hidden is None else self._affine(hidden, self.fed[last], None)
            offset = self.offsets[1][last]
            if fed is None:
                new = w.add(parts[2], w.add(reset, offset, "Mul"))
            else:
                new = w.add(parts[2], w.multiply(reset, w.add(fed, offset)))
        else:
            new = self._fed(parts[2], None if hidden is None else w.multiply(reset, hidden), last)
        new = w.curve("Tanh", new)
        if hidden is None:
            return w.add(new, w.multiply(keep, new), "Sub")
        return w.add(new, w.multiply(keep, w.add(hidden, new, "Sub")))

    def _rows(self, gate: int) -> slice:
        return slice(gate * self.size, (gate + 1) * self.size)

    def _affine(self, x: str, matrix: Array, offset: Array | None) -> str:
        shape = (self.w.shape(x)[0], len(matrix))
        found = self.w.put("MatMul", x, matrix.T.copy(), shape=shape)
        return found if offset is None else self.w.add(found, offset)

    def _fed(self, seen: str, hidden: str | None, rows: slice) -> str:
        """What is seen, with what the hidden state adds."""
        found = self.w.add(seen, self.offsets[1][rows])
        if hidden is None:
            return found
        return self.w.add(found, self._affine(hidden, self.fed[rows], None))

    def _part(self, every: str, gate: int) -> str:
        rows = np.arange(gate * self.size, (gate + 1) * self.size)
        shape = (self.w.shape(every)[0], self.size)
        return self.w.put("Gather", every, rows, shape=shape, axis=1)
