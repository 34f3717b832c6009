"""Softmax in terms of exponentials and quotients, with masked entries.

A mask adds minus infinity to an entry, or replaces the entry by it. Files often use the most
negative float32 number instead of minus infinity. If scores, and other numbers added to them, are
at most `SCORES` in size, the exponential of a masked entry is below exp(-1e37) times a term that
counts. That is far less than the smallest float64, which every bound loses to rounding, so it
counts as 0. Larger scores have no bounds here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from fgp_vnn.network.activations.jumps import SCORES
from fgp_vnn.network.onnx.clean import softmax_sizes
from fgp_vnn.network.onnx.graph import Array
from fgp_vnn.network.onnx.writer import Writer

_NOTHING = -20 * SCORES  # this number and all below it stand for minus infinity
_PAIRWISE = 64  # entries up to which all pairwise differences are used


def softmax(w: Writer) -> str:
    """1 / sum_j exp(z_j - z_i), which has no product, and lies between 0 and 1 by itself.

    The differences are affine, and that of an entry with itself is 0. If there are too many
    entries, the equivalent exp(z_i - log sum_j exp(z_j)) is used.
    """
    shape = w.shape(w.operands[0])
    before, size, behind = softmax_sizes(w.graph, w.node)
    logarithm = w.node.op_type == "LogSoftmax"
    x, kept, sure = _scores(w)
    if kept is not None:
        kept = kept.reshape(before, size, behind)
        if logarithm or not kept.any(1).all():
            raise w.refused("is minus infinity, or leaves out all entries")
    flat = w.reshape(x, (before, size, behind))
    if size > _PAIRWISE:
        terms = _only(w, w.curve("Exp", flat), kept)
        found = w.binary("Sub", flat, w.curve("Log", w.reduced("ReduceSum", terms, [1])))
        return w.reshape(found if logarithm else _only(w, w.curve("Exp", found), kept), shape)
    own = w.reshape(flat, (before, 1, size, behind))
    other = w.reshape(flat, (before, size, 1, behind))
    counted = None
    if kept is not None:  # each entry counts in its own sum, which is then at least 1
        same = np.eye(size).reshape(1, size, size, 1)
        counted = np.maximum(kept.reshape(before, size, 1, behind), same)
    terms = _only(w, w.curve("Exp", w.binary("Sub", other, own)), counted)
    sums = w.reduced("ReduceSum", terms, [1])
    if logarithm:
        return w.reshape(w.binary("Mul", w.curve("Log", sums), -1.0), shape)
    end = w.curve("Reciprocal", sums, **({"softmax": 1} if sure else {}))
    end = w.reshape(end, (before, size, behind))
    return w.reshape(_only(w, end, kept), shape)


def _only(w: Writer, name: str, kept: Array | None) -> str:
    """A tensor with masked entries set to 0."""
    return name if kept is None else w.binary("Mul", name, kept)


class _Scores(NamedTuple):
    """The scores that a softmax reads, without its mask."""

    name: str
    kept: Array | None  # 1 for the entries that count, 0 for masked ones; None if all count
    sure: bool = True  # masked entries are 0 whatever the scores are


def _scores(w: Writer) -> _Scores:
    """The operand of a softmax, separated into scores and mask."""
    x, shape = w.operands[0], w.shape(w.operands[0])
    made = w.graph.makers.get(x)
    found = None if made is None else _added(w, made) or _replaced(w, made)
    if found is None:
        return _Scores(x, None)
    scores, constant, out = found
    rest = np.where(out, 0.0, constant)
    sure = not np.isfinite(constant[out]).any()
    if not sure:
        if (np.abs(rest) > SCORES).any():
            return _Scores(x, None)
        scores = w.curve("Within", scores)
    kept, rest = (np.broadcast_to(part, shape) for part in (~out, rest))
    return _Scores(w.add(scores, np.array(rest)), kept.astype(np.float64), sure)


def _added(w: Writer, made: NodeProto) -> tuple[str, Array, Array] | None:
    """The scores, constant and masked entries of a sum with a constant of which some entries stand
    for minus infinity; None for other nodes."""
    if made.op_type != "Add":
        return None
    for x, name in (made.input, reversed(made.input)):
        constant = w.graph.constants.get(name)
        if constant is not None and w.varies(x) and (constant <= _NOTHING).any():
            return x, constant, constant <= _NOTHING
    return None


def _replaced(w: Writer, made: NodeProto) -> tuple[str, Array, Array] | None:
    """The same for a choice, by a constant condition, between scores and minus infinity."""
    if made.op_type != "Where" or w.varies(made.input[0]):
        return None
    condition = w.graph.constants[made.input[0]].astype(bool)
    for x, name, out in (
        (made.input[2], made.input[1], condition),
        (made.input[1], made.input[2], ~condition),
    ):
        constant = w.graph.constants.get(name)
        if constant is not None and w.varies(x) and (constant <= _NOTHING).all():
            constant, out = np.broadcast_arrays(constant, out)
            return x, np.where(out, constant, 0.0), out
    return None
