"""A network as onnxruntime runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.model_file import external_tensors, parse_model


def open_program(data: bytes, *, as_written: bool = False) -> Any:
    """A model on the CPU, with one thread and no messages of its own; raises what onnxruntime does.

    Without its fallback, which tries the CPU a second time and prints that where verdicts go.
    onnxruntime merges operators, unless they are to be run as they are written.
    """
    import onnxruntime

    _check(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if as_written:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(data, options, providers=providers, enable_fallback=0)


def _check(data: bytes) -> None:
    """Refuse what is no model, or one that onnxruntime must not be given."""
    model = parse_model(data)
    for tensor in external_tensors(model):  # onnxruntime would look for its file anywhere
        raise InputError(f"the weights of {tensor.name!r} are not in the model, but in a file")
    for graph in (model.graph, *model.functions):
        for node in nodes_in(graph):
            check_parts(node)


def nodes_in(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs inside of them."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += [attribute.g, *attribute.graphs]


def check_parts(node: Any) -> None:
    """Refuse a Split node whose number of outputs is wrong: the shape inference of onnx and of
    onnxruntime aborts the process on it."""
    if node.op_type != "Split":
        return
    for said in (a.i for a in node.attribute if a.name == "num_outputs"):
        if said != len(node.output):
            where = f"operator Split (node {node.name or ', '.join(node.output[:1])!r})"
            raise InputError(f"{where} has {len(node.output)} outputs, but num_outputs {said}")
