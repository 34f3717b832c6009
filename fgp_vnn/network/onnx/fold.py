"""Compute what does not depend on the input at loading time: shapes, and nodes of constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from fgp_vnn.base.program import open_program
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, narrowed
from fgp_vnn.network.onnx.read import widened

_ROUNDS = 20


def fold(graph: Graph) -> None:
    """Replace all nodes that do not depend on the input's values by constants, in place."""
    for _ in range(_ROUNDS):
        graph.infer_shapes()
        graph.replace(lambda node: _shape_of(graph, node))
        if not _fold_constants(graph):
            return


def _program(
    graph: Graph,
    nodes: Sequence[NodeProto],
    wanted: Sequence[str],
    inputs: Sequence[ValueInfoProto] = (),
) -> Any:
    """An onnxruntime program of nodes and the constants they read, in float32 as in the file."""
    given = {value.name for value in inputs}
    read = {
        name: narrowed(graph.constants[name])
        for node in nodes
        for name in node.input
        if name in graph.constants and name not in given
    }
    initializers = [numpy_helper.from_array(array, name) for name, array in read.items()]
    outputs = [ValueInfoProto(name=name) for name in wanted]
    proto = helper.make_graph(list(nodes), "part", list(inputs), outputs, initializers)
    model: ModelProto = helper.make_model(
        proto, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=8
    )
    return open_program(model.SerializeToString())


def prober(graph: Graph, node: NodeProto) -> Callable[[Array], list[Array]]:
    """The outputs of a node as onnxruntime computes them, as a function of its first operand."""
    names = [name for name in node.output if name]
    name = node.input[0]
    given = helper.make_tensor_value_info(name, TensorProto.FLOAT, graph.shape(name))
    program = _program(graph, [node], names, [given])
    return lambda value: [
        np.asarray(result) for result in program.run(names, {name: value.astype(np.float32)})
    ]


def _shape_of(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    """Replace a Shape or Size node of a tensor whose shape is known by a constant."""
    if node.op_type not in ("Shape", "Size") or node.input[0] not in graph.shapes:
        return None
    shape = graph.shapes[node.input[0]]
    if node.op_type == "Size":
        value = np.asarray(np.prod(shape, dtype=np.int64))
    else:
        given = attributes(node)
        value = np.asarray(shape[given.get("start", 0) : given.get("end")], dtype=np.int64)
    graph.constants[node.output[0]] = value
    return []


def _fold_constants(graph: Graph) -> bool:
    """Compute all nodes that read only constants; returns whether there were any."""
    known = {"", *graph.constants}
    ready: list[NodeProto] = []
    for node in graph.nodes:
        if node.input and known.issuperset(node.input):
            ready.append(node)
            known.update(node.output)
    if not ready:
        return False
    wanted = [name for node in ready for name in node.output if name]
    for name, value in zip(wanted, _program(graph, ready, wanted).run(wanted, {}), strict=True):
        where = f"constant {name!r}"
        graph.constants[name] = widened(value, where) if value.dtype.kind == "f" else value
    done = {id(node) for node in ready}
    graph.nodes = [node for node in graph.nodes if id(node) not in done]
    return True
