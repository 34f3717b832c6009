"""Running of networks by onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.model_file import external_tensors, parse_model
from fgp_vnn.base.words import plural


def open_program(data: bytes, *, as_written: bool = False) -> Any:
    """Open a model on the CPU, with one thread and without log messages; errors of onnxruntime pass
    through.

    Its fallback is off: that would try the CPU a second time and print to standard output, where
    verdicts go. onnxruntime merges operators unless `as_written` is set.
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
    """Refuse bytes that are not a model, and models that are unsafe to pass to onnxruntime."""
    model = parse_model(data)
    for tensor in external_tensors(model):  # onnxruntime would open its file in any folder
        raise InputError(f"the weights of {tensor.name!r} are not in the model, but in a file")
    for graph in (model.graph, *model.functions):
        for node in nodes_in(graph):
            check_parts(node)


def nodes_in(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of all subgraphs nested in them."""
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
            has = plural(len(node.output), "output")
            raise InputError(f"{where} has {has}, but num_outputs {said}")
