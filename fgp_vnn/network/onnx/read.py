"""Read a model as a graph with constants in double precision; refuse one that is not a function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.program import check_parts, nodes_in
from fgp_vnn.network.onnx.choice import shape_of
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, inputs_of, label, narrowed

_RANDOM = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip
_FLOATS = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


def read_graph(model: ModelProto) -> Graph:
    """The graph of a model; refuses a model without exactly one float32 input and one output."""
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
        opset=opset_of(model),
        names={name for node in nodes for name in (*node.input, *node.output)},
    )
    graph.replace(lambda node: _inline(graph, node))
    _check_order(graph)
    if model.functions:
        raise UnsupportedError("the file defines its own operators, which is not supported")
    for part in nodes_in(proto):
        check_parts(part)
    for node in graph.nodes:
        _check_fixed(graph, node)
    return graph


def ends_of(proto: onnx.GraphProto) -> tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]:
    """The one input and the one output of a graph; refuses more or fewer."""
    inputs = inputs_of(proto)
    for count, kind in ((len(inputs), "inputs"), (len(proto.output), "outputs")):
        if count != 1:
            raise UnsupportedError(f"the network has {count} {kind}; exactly one is supported")
    return inputs[0], proto.output[0]


def _check_order(graph: Graph) -> None:
    """Refuse a node that reads a tensor which no earlier node computes."""
    known = {"", graph.input, *graph.constants}
    for node in graph.nodes:
        unknown = [name for name in node.input if name not in known]
        if unknown:
            raise InputError(f"{label(node)} reads {unknown[0]!r}, which no earlier node computes")
        known.update(node.output)
    if graph.output not in known:
        raise InputError(f"no node computes the output {graph.output!r}")


def _check_fixed(graph: Graph, node: NodeProto) -> None:
    """Refuse a node whose result is not, or may not be, a function of its operands."""
    check_random(node, lambda name: not graph.constants.get(name, np.ones(1)).any())
    if any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute):
        raise UnsupportedError(f"{label(node)} contains a subgraph, which is not supported")


def check_random(node: NodeProto, is_false: Callable[[str], bool]) -> None:
    """Refuse a node that gives random values; `is_false` says which tensors are constants of 0."""
    if node.op_type in _RANDOM:
        raise UnsupportedError(f"{label(node)} gives random values")
    mode = node.input[2] if node.op_type == "Dropout" and len(node.input) > 2 else ""
    if mode and not is_false(mode):
        raise UnsupportedError(f"{label(node)} drops values at random, as in training")


def opset_of(model: ModelProto) -> int:
    """The version of ONNX's own operators that a model uses."""
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
    return shape_of(value)


def _array(tensor: TensorProto, where: str) -> Array:
    """A tensor's values, in float64 if they are floating-point."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise InputError(f"{where} is stored in another file, which is not supported")
    array: Array = numpy_helper.to_array(tensor)
    return widened(array, where) if tensor.data_type in _FLOATS else array


def widened(array: Array, where: str) -> Array:
    """Floating-point values as float64; refuses NaN and infinity, but not minus infinity, which may
    be the mask of a softmax."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        result: Array = array.astype(np.float64)
    if not (result < np.inf).all():
        raise InputError(f"{where} has NaN or infinite values")
    return result


def check_precision(graph: Graph) -> None:
    """Round constants that the file casts to float32, in place, and refuse other constants that
    float32 cannot represent: maps rely on products of float32 numbers, which are exact in float64.
    """
    for name, array in graph.constants.items():
        single = narrowed(array)
        if array.dtype.kind != "f" or np.array_equal(single, array):
            continue
        for node in graph.nodes:
            if name in node.input and not _rounds(node):
                raise UnsupportedError(
                    f"{label(node)} reads {name!r}, which is in double precision"
                )
        graph.constants[name] = single.astype(np.float64)


def _rounds(node: NodeProto) -> bool:
    return node.op_type == "Cast" and attributes(node)["to"] == TensorProto.FLOAT


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
