"""The checker's own network reader: from ONNX to affine maps with activations between them.

z_k = F_k(x, a_1, ..., a_{k-1}), and a_k is max(z_k, 0), a sigmoid or hyperbolic tangent of z_k, or
the products of its first half with its second; y = F_out(x, a_1, ..., a_K). Every tensor is flat in
C order. Layers are numbered in the order of their nodes. Weights are the numbers of the file, which
float64 holds exactly; an entry composed of several weights is known up to its rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.certificate.checker.call import Call
from fgp_vnn.certificate.checker.forms import MOST_ENTRIES, ONE, Array, Form, source
from fgp_vnn.certificate.checker.operators import RULES

RELU = "Relu"


@dataclass(frozen=True, eq=False)
class AffineMap:
    """sum of weights[s] @ value_s, plus the bias; each entry is off by at most gamma(steps) times
    its size."""

    weights: dict[int, Array]  # by source: 0 is x, k the k-th layer's output; [outputs, n_s]
    bias: Array  # [outputs]
    sizes: dict[int, Array]
    bias_size: Array
    steps: int

    @property
    def outputs(self) -> int:
        return len(self.bias)


@dataclass(frozen=True, eq=False)
class CheckedNetwork:
    """The maps F_1, ..., F_K, F_out; all layers are ReLUs if no kinds are given."""

    maps: tuple[AffineMap, ...]
    inputs: int
    kinds: tuple[str, ...] = ()  # of each layer, by its ONNX operator

    def __post_init__(self) -> None:
        if not self.kinds:
            object.__setattr__(self, "kinds", (RELU,) * (len(self.maps) - 1))
        if len(self.kinds) != len(self.maps) - 1:
            raise ValueError("each layer has one kind")

    @property
    def widths(self) -> list[int]:
        return [layer.outputs for layer in self.maps[:-1]]


def read_network(data: bytes) -> CheckedNetwork:
    """Read a network from an ONNX file's content; an operator or attribute that is not supported
    raises an error with its name."""
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's DecodeError, whose module differs between versions
        raise InputError("not an ONNX file") from error
    if model.functions:
        raise UnsupportedError("the file defines its own operators")
    graph = model.graph
    constants = {t.name: _array(t) for t in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise UnsupportedError("the checker reads networks with one input and one output")
    reader = _Reader(constants)
    shape = _shape(inputs[0])
    reader.forms[inputs[0].name] = source(0, shape)
    for node in _needed(list(graph.node), graph.output[0].name):
        reader.read(node)
    output = reader.forms.get(graph.output[0].name)
    if output is None:
        raise UnsupportedError("the output does not depend on the input")
    return CheckedNetwork((*reader.layers, _map(output)), prod(shape), tuple(reader.kinds))


class _Reader:
    """Collects the form or constant value of each tensor, and the layers."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self.constants = constants
        self.forms: dict[str, Form] = {}
        self.layers: list[AffineMap] = []
        self.kinds: list[str] = []
        self._active: dict[Form, Form] = {}  # a ReLU of the same tensor is the same layer

    def read(self, node: NodeProto) -> None:
        where = f"operator {node.op_type} (node {node.name or node.output[0]!r})"
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.domain not in ("", "ai.onnx"):
            raise UnsupportedError(f"{where} is not one of ONNX's own")
        if node.op_type == "Constant":
            self.constants[node.output[0]] = _constant(given, where)
            return
        if node.op_type == "Identity" and not given and node.input[0] in self.constants:
            # One of torch's exporters gives equal parameters a second name this way.
            self.constants[node.output[0]] = self.constants[node.input[0]]
            return
        if node.op_type not in RULES:
            raise UnsupportedError(f"{where} is not known to the checker of certificates")
        rule, known = RULES[node.op_type]
        if strange := set(given) - known:
            raise UnsupportedError(f"{where} has the attribute {min(strange)!r}, not known here")
        values = [self._value(name, where) for name in node.input]
        try:
            found = rule(Call(values, given, len(node.output), self._relu, self._layer))
        except UnsupportedError as error:
            raise UnsupportedError(f"{where}: {error}") from None
        except (ValueError, LookupError, TypeError) as error:  # shapes that do not fit
            raise UnsupportedError(f"{where}: {' '.join(str(error).split())[:200]}") from None
        for name, form in zip(
            node.output, found if isinstance(found, list) else [found], strict=False
        ):
            if sum(block.size for block in form.blocks.values()) > MOST_ENTRIES:
                raise UnsupportedError(f"{where} is too large for the checker")
            self.forms[name] = form

    def _value(self, name: str, where: str) -> Form | Any | None:
        if name == "":
            return None
        found = self.forms.get(name, self.constants.get(name))
        if found is None:
            raise UnsupportedError(f"{where} reads {name!r}, which no earlier node computes")
        return found

    def _relu(self, form: Form) -> Form:
        """The ReLU of a tensor; each tensor gets one layer, and relu(relu(z)) = relu(z)."""
        if form not in self._active:
            active = self._layer(form, RELU, form.shape)
            self._active |= {form: active, active: active}
        return self._active[form]

    def _layer(self, form: Form, kind: str, shape: tuple[int, ...]) -> Form:
        """Add a layer; returns the form of its values, of the given shape."""
        self.layers.append(_map(form))
        self.kinds.append(kind)
        return source(len(self.layers), shape)


def _map(form: Form) -> AffineMap:
    """The affine map of a form, with its blocks as matrices."""
    count = prod(form.shape)

    def matrices(blocks: dict[int, Array]) -> tuple[dict[int, Array], Array]:
        flat = {s: np.ascontiguousarray(b.reshape(len(b), count).T) for s, b in blocks.items()}
        return flat, flat.pop(ONE)[:, 0]

    weights, bias = matrices(form.blocks)
    sizes, bias_size = matrices(form.sizes)
    return AffineMap(weights, bias, sizes, bias_size, form.steps)


def _needed(nodes: list[NodeProto], output: str) -> list[NodeProto]:
    """The nodes that the output depends on, in their order."""
    wanted, kept = {output}, []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]


def _shape(value: Any) -> tuple[int, ...]:
    """The input's shape, with an open batch dimension set to 1."""
    tensor = value.type.tensor_type
    if tensor.elem_type != TensorProto.FLOAT:
        raise UnsupportedError("the checker reads networks with a float32 input")
    sizes = [d.dim_value if d.HasField("dim_value") else 0 for d in tensor.shape.dim]
    if sizes and sizes[0] <= 0:
        sizes[0] = 1
    if any(size <= 0 for size in sizes):
        raise UnsupportedError("the input has an open dimension beside the batch")
    return tuple(sizes)


def _constant(given: dict[str, Any], where: str) -> Any:
    ((name, value),) = given.items()
    if name == "value":
        return _array(value)
    if name in ("value_float", "value_floats", "value_int", "value_ints"):
        return np.asarray(value)
    raise UnsupportedError(f"{where} holds its value as {name!r}")


def _array(tensor: TensorProto) -> Any:
    if tensor.data_location == TensorProto.EXTERNAL:
        raise UnsupportedError(f"{tensor.name!r} is stored in another file")
    array = numpy_helper.to_array(tensor)
    if array.dtype.kind == "f" or "float" in str(array.dtype):
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise InputError(f"{tensor.name!r} has NaN or infinite values")
    return array
