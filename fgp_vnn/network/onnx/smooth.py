"""Rewrite smooth operators as activations and products of two variables.

Several operators that together compute one known function (z sigmoid(z), the usual form of GELU,
the root of a quotient) are read as that function, since it has tighter lines than a composition.
Everything else becomes a few activations of `activations.table` and products: nothing after loading
knows softmax, normalisation or attention.
"""

from __future__ import annotations

import numpy as np
import torch
from onnx import NodeProto

from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.activations.powers import exponential, power
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.activations.table import ACTIVATIONS
from fgp_vnn.network.onnx.graph import Graph, attributes, make_node
from fgp_vnn.network.onnx.quadratic import squares_of
from fgp_vnn.network.onnx.quantised import dequantise, quantise
from fgp_vnn.network.onnx.recurrent import recurrent
from fgp_vnn.network.onnx.softmax import softmax
from fgp_vnn.network.onnx.sums import einsum, log_sum, norm, reduced_product, running_sum
from fgp_vnn.network.onnx.writer import Rule, Writer, write_by_rules

# Operators that do not exist in ONNX: z^p, p^z, and products of pairs of entries.
_OWN = {"Exponential", "Power", "Product"}
SMOOTH = frozenset({*ACTIVATIONS, *_OWN})


def activation_of(graph: Graph, node: NodeProto) -> Activation | None:
    """The activation that a node applies to its operand's entries; None for other nodes."""
    if node.op_type == "Relu":
        return RELU
    if node.op_type == "Power":
        return power(attributes(node)["exponent"])
    if node.op_type == "Exponential":
        return exponential(attributes(node)["base"])
    if node.op_type == "Product":
        left, right = (torch.from_numpy(graph.constants[name]) for name in node.input[1:])
        return Product(left, right)
    make = ACTIVATIONS.get(node.op_type)
    return None if make is None else make(attributes(node))


def stand_in(node: NodeProto) -> NodeProto:
    """A node of the same shape that onnx2torch supports; its values are never used."""
    if node.op_type == "Product":
        return make_node("Gather", node.input[:2], node.output[0], axis=0)
    return make_node("Relu", node.input[:1], node.output[0])


def _maker(w: Writer, name: str, kind: str) -> NodeProto | None:
    made = w.graph.makers.get(name)
    return made if made is not None and made.op_type == kind else None


def _mul(w: Writer) -> str | None:
    a, b = w.operands
    if not (w.varies(a) and w.varies(b)):
        return None
    for x, s in ((a, b), (b, a)):
        gate = _maker(w, s, "Sigmoid")
        if gate is not None and gate.input[0] == x:
            return w.curve("SiLU", x)
        unit = _gate_unit(w, x, s)
        if unit is not None:  # twice a GELU
            return w.binary("Mul", w.curve("Gelu", x, unit=unit), 2.0)
    return w.multiply(a, b)


def _gate_unit(w: Writer, x: str, gate: str) -> float | None:
    """The number c if `gate` is 1 + erf(x / c), else None."""
    added = _maker(w, gate, "Add")
    if added is None:
        return None
    for first, second in (added.input, reversed(added.input)):
        erf = _maker(w, first, "Erf")
        if erf is None or w.graph.uniform(second, first) != 1:
            continue
        scaled = w.graph.makers.get(erf.input[0])
        if scaled is None or scaled.op_type not in ("Div", "Mul") or scaled.input[0] != x:
            continue
        factor = w.graph.uniform(scaled.input[1], x)
        if factor is None or factor <= 0:
            continue
        return factor if scaled.op_type == "Div" else 1 / factor
    return None


def _div(w: Writer) -> str | None:
    a, b = w.operands
    if not w.varies(b):
        return None
    root = _maker(w, b, "Sqrt")
    below = w.power(b, -1.0) if root is None else w.power(root.input[0], -0.5)
    if not w.varies(a):
        return below if w.graph.uniform(a, b) == 1 else w.binary("Mul", below, w.graph.constants[a])
    return w.multiply(a, below)


def _pow(w: Writer) -> str | None:
    a, b = w.operands
    if w.varies(b):
        base = w.graph.uniform(a, b)
        if base is not None and base > 0 and base != 1:
            return w.curve("Exponential", b, base=base)
        if not w.varies(a):
            raise w.refused("has more than one base, or one that is not > 0")
        return w.curve("Exp", w.multiply(b, w.curve("Log", a)))
    exponent = w.graph.uniform(b, a)
    if exponent is None:
        raise w.refused("has more than one exponent, or enlarges its input")
    if exponent == 0:
        raise w.refused("has the exponent 0")
    return w.power(a, exponent)


def _matmul(w: Writer) -> str | None:
    """All products of entries, then sums over the inner axis."""
    a, b = w.operands
    if not (w.varies(a) and w.varies(b)):
        return None
    if min(len(w.shape(a)), len(w.shape(b))) < 2:
        raise w.refused("multiplies vectors that both depend on the input")
    left = np.expand_dims(w.numbers(a), -1)  # [..., n, k, 1]
    right = np.expand_dims(w.numbers(b), -3)  # [..., 1, k, m]
    found = w.products(a, b, *np.broadcast_arrays(left, right))
    return w.in_shape(w.reduced("ReduceSum", found, [len(w.shape(found)) - 2]))


def _reduce_sum(w: Writer) -> str | None:
    """The sum of x_i (x M)_i over i, a quadratic form, as a sum of squares if possible."""
    product, last = _maker(w, w.operands[0], "Mul"), [len(w.shape(w.operands[0])) - 1]
    if product is None or w.axes != last:
        return None
    for x, moved in (product.input, reversed(product.input)):
        image = _maker(w, moved, "MatMul")
        if image is None or image.input[0] != x or w.varies(image.input[1]):
            continue
        found = squares_of(w.graph.constants[image.input[1]])
        if found is None or w.shape(x) != w.shape(moved):
            continue
        squares = w.curve("Square", w.put("MatMul", x, found.factor.T, shape=w.shape(x)))
        rest = w.multiply(x, w.put("MatMul", x, found.rest, shape=w.shape(x)))
        both = w.add(*(w.reduced("ReduceSum", part, last) for part in (squares, rest)))
        return w.in_shape(w.binary("Mul", both, float(found.sign)))
    return None


def _normalised(w: Writer, axes: list[int]) -> str:
    """(x - mean) / sqrt(variance + epsilon) over some axes."""
    x, epsilon = w.operands[0], float(w.given.get("epsilon", np.float32(1e-5)))
    centred = w.binary("Sub", x, w.reduced("ReduceMean", x, axes))
    variance = w.reduced("ReduceMean", w.curve("Square", centred), axes)
    return w.multiply(centred, w.power(w.add(variance, epsilon), -0.5))


def _layer_norm(w: Writer) -> str | None:
    if len([name for name in w.node.output if name]) > 1:
        raise w.refused("gives more than the normalised values")
    rank = len(w.shape(w.operands[0]))
    found = _normalised(w, list(range(w.given.get("axis", -1) % rank, rank)))
    found = w.binary("Mul", found, w.operands[1])
    return w.add(found, w.operands[2]) if w.has(2) else found


def _instance_norm(w: Writer) -> str | None:
    shape = w.shape(w.operands[0])
    found = _normalised(w, list(range(2, len(shape))))
    each = (1, shape[1], *(1 for _ in shape[2:]))
    scale, offset = (w.constant(index).reshape(each) for index in (1, 2))
    return w.add(w.binary("Mul", found, scale), offset)


def _gelu(w: Writer) -> str | None:
    if w.given.get("approximate", b"none") == b"none":
        return None
    x = w.operands[0]
    inner = w.add(x, w.binary("Mul", w.power(x, 3.0), 0.044715))
    gate = w.curve("Tanh", w.binary("Mul", inner, float(np.sqrt(2 / np.pi))))
    return w.binary("Mul", w.add(w.multiply(x, gate), x), 0.5)


def _mish(w: Writer) -> str | None:
    x = w.operands[0]
    return w.multiply(x, w.curve("Tanh", w.curve("Softplus", x)))


_RULES: dict[str, Rule] = {
    "CumSum": running_sum,
    "DequantizeLinear": dequantise,
    "Div": _div,
    "Einsum": einsum,
    "Gelu": _gelu,
    "GRU": recurrent,
    "InstanceNormalization": _instance_norm,
    "LSTM": recurrent,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": softmax,
    "MatMul": _matmul,
    "Mish": _mish,
    "Mul": _mul,
    "Pow": _pow,
    "QuantizeLinear": quantise,
    "RNN": recurrent,
    "ReduceL1": norm,
    "ReduceL2": norm,
    "ReduceLogSum": log_sum,
    "ReduceLogSumExp": log_sum,
    "ReduceProd": reduced_product,
    "ReduceSum": _reduce_sum,
    "ReduceSumSquare": norm,
    "Softmax": softmax,
}
WRITTEN_OUT = frozenset({*_RULES, *ACTIVATIONS}) - {"Square", "SiLU", "Step", "Within"}


def write_out(graph: Graph) -> None:
    """Replace smooth operators and products of variables by activations and products, in place."""
    write_by_rules(graph, _RULES)
    graph.prune()
