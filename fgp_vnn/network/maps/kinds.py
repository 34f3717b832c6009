"""The ONNX operator of each node of a torch graph, by which the rules here are chosen."""

from __future__ import annotations

from torch import fx

_KEY = "operator"  # in a node's `meta`, which copies of graphs and of modules keep


def mark(node: fx.Node, kind: str) -> None:
    """Note the ONNX operator that a call of a module computes."""
    node.meta[_KEY] = kind


def kind(node: fx.Node) -> str | None:
    """The ONNX operator of a node; None for inputs, constants and unmarked nodes."""
    return node.meta.get(_KEY)


def kinds(module: fx.GraphModule) -> dict[str, str]:
    """The ONNX operators of a graph by the names of the modules that compute them. Unpickling
    traces a graph anew, after which `mark_again` restores these marks."""
    calls = (node for node in module.graph.nodes if node.op == "call_module")
    return {str(node.target): found for node in calls if (found := kind(node)) is not None}


def mark_again(module: fx.GraphModule, marks: dict[str, str]) -> None:
    """Mark a graph that was traced anew with the operators that `kinds` returned for it."""
    for node in module.graph.nodes:
        if node.op == "call_module" and str(node.target) in marks:
            mark(node, marks[str(node.target)])
