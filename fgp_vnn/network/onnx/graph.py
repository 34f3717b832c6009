"""An ONNX graph in the few terms that loading needs: nodes, constants, shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.program import check_parts, nodes_in

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

RANDOM = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip
_SMALL = 1000  # entries of a constant that may say something of shapes
_MOST = 1 << 24  # entries of a tensor that depends on the input: float32 counts so far
_FLOATS = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass
class Graph:
    """One input, one output, and nodes in topological order.

    All floating-point constants are float64, so that whatever is computed from them at loading
    time is exact to double precision.
    """

    nodes: list[NodeProto]
    constants: dict[str, Array]
    input: str
    input_shape: tuple[int, ...]
    output: str
    opset: int
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of all tensors
    _count: int = 0

    def shape(self, name: str) -> tuple[int, ...]:
        if name in self.constants:
            return tuple(self.constants[name].shape)
        if name not in self.shapes:
            raise UnsupportedError(f"the shape of tensor {name!r} cannot be told from the file")
        return self.shapes[name]

    def constant(self, array: Any, hint: str = "constant") -> str:
        """Add a constant under a name that nothing else has, and return that name."""
        name = self.fresh(hint)
        self.constants[name] = np.asarray(array)
        return name

    def fresh(self, hint: str) -> str:
        """A tensor name that nothing else has."""
        self._count += 1
        while (name := f"{hint}_{self._count}") in self.names:
            self._count += 1
        self.names.add(name)
        return name

    def variables(self) -> set[str]:
        """The tensors that depend on the input."""
        found = {self.input}
        for node in self.nodes:
            if any(name in found for name in node.input):
                found.update(node.output)
        return found

    @property
    def makers(self) -> dict[str, NodeProto]:
        """The node that computes each tensor."""
        return {name: node for node in self.nodes for name in node.output}

    def prune(self) -> None:
        """Drop the nodes that the output does not need."""
        needed = {self.output}
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.constants = {name: a for name, a in self.constants.items() if name in needed}

    def model(self, *, declared: Collection[str] = (), single: bool = False) -> ModelProto:
        """The graph as an ONNX model in double precision, or in single as in the file, with the
        constants that it reads; those in `declared`, whose values are not needed and would take
        long to write out, become inputs behind the real one."""
        kind = TensorProto.FLOAT if single else TensorProto.DOUBLE
        read = {self.output, *(name for node in self.nodes for name in node.input)} - {*declared}
        constants = {n: a for n, a in self.constants.items() if n in read}
        if single:
            constants = {n: narrowed(a) for n, a in constants.items()}
        inputs = [(self.input, kind, self.input_shape)]
        for name in declared:
            array = self.constants[name]
            floats = array.dtype.kind == "f"
            given = kind if floats else helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append((name, given, array.shape))
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(*given) for given in inputs],
            [helper.make_tensor_value_info(self.output, kind, None)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )

    def infer_shapes(self) -> None:
        """Fill `shapes` with what ONNX can tell without running the network.

        In single precision: the scales of a Resize are read in no other.
        """
        large = {name for name, array in self.constants.items() if array.size > _SMALL}
        model = self.model(declared=large, single=True)
        proto = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        for value in (*proto.input, *proto.value_info, *proto.output):
            tensor = value.type.tensor_type
            dims = tensor.shape.dim
            if tensor.HasField("shape") and all(d.HasField("dim_value") for d in dims):
                shape = tuple(d.dim_value for d in dims)
                if not 0 < prod(shape) <= _MOST and value.name not in self.constants:
                    raise UnsupportedError(f"{value.name!r} has {prod(shape)} entries")
                self.shapes[value.name] = shape

    def skip_copies(self) -> None:
        """Drop every Identity, and every Relu of a Relu: they give what they read."""
        same: dict[str, str] = {}
        active: set[str] = set()
        kept = []
        for node in self.nodes:
            for i, name in enumerate(node.input):
                node.input[i] = same.get(name, name)
            if node.op_type == "Identity" or (node.op_type == "Relu" and node.input[0] in active):
                same[node.output[0]] = node.input[0]
                continue
            kept.append(node)
            if node.op_type == "Relu":
                active.add(node.output[0])
        self.nodes = kept
        self.output = same.get(self.output, self.output)

    def replace(self, rule: Callable[[NodeProto], Iterable[NodeProto] | None]) -> None:
        """Put what `rule` gives in the place of each node; None keeps the node."""
        result: list[NodeProto] = []
        for node in self.nodes:
            replacement = rule(node)
            result.extend([node] if replacement is None else replacement)
        self.nodes = result


def attributes(node: NodeProto) -> dict[str, Any]:
    """A node's attributes by name."""
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def make_node(kind: str, inputs: Sequence[str], output: str, **attribute: Any) -> NodeProto:
    """A node with one output."""
    node: NodeProto = helper.make_node(kind, list(inputs), [output], **attribute)
    return node


def label(node: NodeProto) -> str:
    """A node as an error message names it."""
    return f"operator {node.op_type} (node {node.name or node.output[0]!r})"


def read_graph(model: ModelProto) -> Graph:
    """Take a model apart; refuses what has not exactly one float32 input and one output."""
    proto = model.graph
    constants = {t.name: _array(t, f"initialiser {t.name!r}") for t in proto.initializer}
    read, given = ends_of(proto)
    if proto.sparse_initializer:
        raise UnsupportedError("the network has sparse initialisers, which are not supported")
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in proto.node]
    graph = Graph(
        nodes=nodes,
        constants=constants,
        input=read.name,
        input_shape=input_shape(read),
        output=given.name,
        opset=_opset(model),
        names={name for node in nodes for name in (*node.input, *node.output)},
    )
    graph.replace(lambda node: _inline(graph, node))
    _check_order(graph)
    if model.functions:
        raise UnsupportedError("the file defines operators of its own, which is not supported")
    for part in nodes_in(proto):
        check_parts(part)
    for node in graph.nodes:
        _check_fixed(graph, node)
    return graph


def ends_of(proto: onnx.GraphProto) -> tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]:
    """The one input and the one output of a graph; refuses more or fewer."""
    constants = {tensor.name for tensor in proto.initializer}
    inputs = [value for value in proto.input if value.name not in constants]
    for count, kind in ((len(inputs), "inputs"), (len(proto.output), "outputs")):
        if count != 1:
            raise UnsupportedError(f"the network has {count} {kind}; exactly one is supported")
    return inputs[0], proto.output[0]


def _check_order(graph: Graph) -> None:
    """Refuse a node that reads what nothing before it computes."""
    known = {"", graph.input, *graph.constants}
    for node in graph.nodes:
        unknown = [name for name in node.input if name not in known]
        if unknown:
            raise InputError(f"{label(node)} reads {unknown[0]!r}, which nothing before it gives")
        known.update(node.output)
    if graph.output not in known:
        raise InputError(f"no node gives the output {graph.output!r}")


def _check_fixed(graph: Graph, node: NodeProto) -> None:
    """Refuse a node whose result is not a function of its operands, or may not be."""
    if node.op_type in RANDOM:
        raise UnsupportedError(f"{label(node)} gives random values")
    if any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute):
        raise UnsupportedError(f"{label(node)} holds a graph of its own, which is not supported")
    mode = node.input[2] if node.op_type == "Dropout" and len(node.input) > 2 else ""
    if mode and graph.constants.get(mode, np.asarray(True)).any():
        raise UnsupportedError(f"{label(node)} drops values at random, as in training")


def _opset(model: ModelProto) -> int:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions:
        raise InputError("the file names no version of the ONNX operators")
    return int(max(versions))


def input_shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The input's shape with an open batch dimension set to 1."""
    tensor = value.type.tensor_type
    if tensor.elem_type != TensorProto.FLOAT:
        kind = TensorProto.DataType.Name(tensor.elem_type)
        raise UnsupportedError(f"input {value.name!r} is of type {kind}; only FLOAT is supported")
    if not tensor.HasField("shape"):
        raise UnsupportedError(f"input {value.name!r} has no shape")
    dims = [d.dim_value if d.HasField("dim_value") else 0 for d in tensor.shape.dim]
    if dims and dims[0] <= 0:
        dims[0] = 1
    if any(d <= 0 for d in dims):
        raise UnsupportedError(f"input {value.name!r} has an open dimension beside the batch")
    return tuple(dims)


def _array(tensor: TensorProto, where: str) -> Array:
    """A tensor's values, in float64 if they are floating-point."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise InputError(f"{where} is stored in another file, which is not supported")
    array: Array = numpy_helper.to_array(tensor)
    return widened(array, where) if tensor.data_type in _FLOATS else array


def widened(array: Array, where: str) -> Array:
    """Floating-point values as float64; refuses NaN and infinity."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        result: Array = array.astype(np.float64)
    if not np.isfinite(result).all():
        raise InputError(f"{where} has NaN or infinite values")
    return result


def narrowed(array: Array) -> Array:
    """Floating-point values as float32, infinite where they are too large for it."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32) if array.dtype.kind == "f" else array


def _inline(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """Turn Constant nodes into constants of the graph."""
    if node.domain not in ("", "ai.onnx"):
        raise UnsupportedError(f"{label(node)} is of domain {node.domain!r}, which is not ONNX's")
    if node.op_type != "Constant":
        return None
    ((name, value),) = attributes(node).items()
    if name == "value":
        array = _array(value, label(node))
    elif name in ("value_float", "value_floats"):
        array = np.asarray(value, dtype=np.float64)
    elif name in ("value_int", "value_ints"):
        array = np.asarray(value, dtype=np.int64)
    else:
        raise UnsupportedError(f"{label(node)} holds its value as {name!r}")
    graph.constants[node.output[0]] = array
    return []
