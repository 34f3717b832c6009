"""Piecewise-linear operators as ReLUs and affine operators."""

from __future__ import annotations

from fgp_vnn.network.graph import Graph

REWRITTEN: frozenset[str] = frozenset()


def rewrite(graph: Graph) -> None:
    """Rewrite in place."""
