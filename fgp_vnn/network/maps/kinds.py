"""The ONNX operator of each node of a torch graph, by which the rules here are chosen."""

from __future__ import annotations

from torch import fx

_KEY = "operator"  # in a node's `meta`, which copies of graphs and of modules keep


def mark(node: fx.Node, kind: str) -> None:
    """Note the ONNX operator that a call of a module computes."""
    node.meta[_KEY] = kind


def kind(node: fx.Node) -> str | None:
    """The ONNX operator of a node; None for inputs, constants and what nobody has marked."""
    found: str | None = node.meta.get(_KEY)
    return found
