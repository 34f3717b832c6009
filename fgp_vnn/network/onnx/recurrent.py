"""Unroll RNN, GRU and LSTM step by step into affine maps, gates and products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fgp_vnn.network.onnx.graph import Array
from fgp_vnn.network.onnx.writer import Writer

_USUAL = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}


def recurrent(w: Writer) -> str:
    """The hidden states [steps, directions, batch, hidden]; the last states are further outputs."""
    _check(w)
    read = w.operands[0]
    steps, *each = w.shape(read)
    backwards = {b"reverse": [True], b"bidirectional": [False, True]}
    ways = backwards.get(w.given.get("direction", b"forward"), [False])
    ends: list[list[str]] = [[], []]  # the last hidden and inner states of all directions
    states: list[list[str]] = [[] for _ in range(steps)]
    for number, back in enumerate(ways):
        cell = _Cell.of(w, number)
        hidden, inner = (_start(w, index, number) for index in (5, 6))
        for step in reversed(range(steps)) if back else range(steps):
            x = w.taken(read, np.asarray(step, dtype=np.int64), tuple(each))
            hidden, inner = cell.step(x, hidden, inner)
            states[step].append(hidden)
        for end, state in zip(ends, (hidden, inner), strict=True):
            end.extend([] if state is None else [state])
    for output, parts in zip(w.node.output[1:], ends, strict=False):
        if output:
            w.put("Identity", _stacked(w, parts, w.shape(output)), output=output)
    every = [state for step in states for state in step]
    return _stacked(w, every, (steps, len(ways), *w.shape(every[0])))


def _check(w: Writer) -> None:
    """Refuse the forms of these operators that are not supported here."""
    functions = [name.decode() for name in w.given.get("activations", [])]
    ways = 2 if w.given.get("direction") == b"bidirectional" else 1
    usual = functions in ([], ways * _USUAL[w.node.op_type])
    rectified = w.node.op_type == "RNN" and functions == ways * ["Relu"]
    odd = any(w.given.get(name) for name in ("clip", "input_forget", "layout"))
    varying = any(w.varies(name) for name in w.operands[1:4] if name)
    started = any(w.graph.constants[n].any() for n in w.operands[5:7] if not w.varies(n))
    odd = odd or w.has(4) or w.has(7) or started
    if odd or varying or not (usual or rectified):
        raise w.refused("has an unusual form, which is not supported")


def _start(w: Writer, index: int, number: int) -> str | None:
    """The initial state of a direction; None if it is 0."""
    if not w.has(index) or not w.varies(w.operands[index]):
        return None
    name = w.operands[index]
    return w.taken(name, np.asarray(number, dtype=np.int64), w.shape(name)[1:])


def _stacked(w: Writer, parts: list[str], shape: tuple[int, ...]) -> str:
    """Concatenate states [batch, hidden], and reshape the result."""
    if len(parts) == 1:
        return w.reshape(parts[0], shape)
    batch, hidden = w.shape(parts[0])
    joined = w.put("Concat", *parts, shape=(len(parts) * batch, hidden), axis=0)
    return w.reshape(joined, shape)


@dataclass(frozen=True)
class _Cell:
    """One direction: weights [gates * hidden, inputs], [gates * hidden, hidden], two offsets."""

    w: Writer
    kind: str
    size: int
    read: Array
    fed: Array
    offsets: tuple[Array, Array]
    function: str  # activation of an RNN
    resets_last: bool  # a GRU's reset gate multiplies the matrix product, not the hidden state

    @classmethod
    def of(cls, w: Writer, number: int) -> _Cell:
        read, fed = (w.constant(index)[number] for index in (1, 2))
        both = w.constant(3)[number] if w.has(3) else np.zeros(2 * len(read))
        function = next(iter(w.given.get("activations", [])), b"Tanh").decode()
        resets_last = bool(w.given.get("linear_before_reset", 0))
        offsets = (both[: len(read)], both[len(read) :])
        return cls(w, w.node.op_type, fed.shape[1], read, fed, offsets, function, resets_last)

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
                new = w.add(parts[2], w.binary("Mul", reset, offset))
            else:
                new = w.add(parts[2], w.multiply(reset, w.add(fed, offset)))
        else:
            new = self._fed(parts[2], None if hidden is None else w.multiply(reset, hidden), last)
        new = w.curve("Tanh", new)
        if hidden is None:
            return w.binary("Sub", new, w.multiply(keep, new))
        return w.add(new, w.multiply(keep, w.binary("Sub", hidden, new)))

    def _rows(self, gate: int) -> slice:
        return slice(gate * self.size, (gate + 1) * self.size)

    def _affine(self, x: str, matrix: Array, offset: Array | None) -> str:
        shape = (self.w.shape(x)[0], len(matrix))
        found = self.w.put("MatMul", x, matrix.T.copy(), shape=shape)
        return found if offset is None else self.w.add(found, offset)

    def _fed(self, seen: str, hidden: str | None, rows: slice) -> str:
        """Add the contribution of the hidden state to that of the input, `seen`."""
        found = self.w.add(seen, self.offsets[1][rows])
        if hidden is None:
            return found
        return self.w.add(found, self._affine(hidden, self.fed[rows], None))

    def _part(self, every: str, gate: int) -> str:
        rows = np.arange(gate * self.size, (gate + 1) * self.size)
        shape = (self.w.shape(every)[0], self.size)
        return self.w.taken(every, rows, shape, axis=1)
