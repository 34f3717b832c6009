"""Cut the torch graph of a network at its activations into affine parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import torch
from torch import Tensor, fx

from fgp_vnn.base.errors import UnsupportedError, one_line
from fgp_vnn.network.activations.base import RELU, Activation


@dataclass(frozen=True)
class AffinePart:
    """The part of the torch graph that is one affine map."""

    end: fx.Node
    sources: tuple[int, ...]
    inside: tuple[fx.Node, ...]  # the nodes from the sources to the end, in order


class CutGraph:
    """A torch graph, and the nodes where its affine maps begin and end."""

    def __init__(
        self,
        module: fx.GraphModule,
        input_shape: tuple[int, ...],
        activations: Mapping[str, Activation],
    ) -> None:
        """`activations` are the activations that nodes stand for, by the nodes' names."""
        _note_shapes(module, input_shape)
        self.module = module
        self.stops: dict[fx.Node, int] = {}  # where maps begin: source numbers; 0 is the input
        self.ends: list[fx.Node] = []  # the operand of each activation, then the output
        self.activations: list[Activation] = []
        self._named = activations
        self.varying: set[fx.Node] = set()  # nodes that depend on the input
        self._known_twins: dict[fx.GraphModule, dict[fx.Node, fx.Node]] = {}
        for node in module.graph.nodes:
            self._place(node)
        self.shapes = {s: node.meta["shape"] for node, s in self.stops.items()}  # of the sources

    def _place(self, node: fx.Node) -> None:
        """Cut at the node if it is an activation; a ReLU of a ReLU, or the same activation of the
        same node again, shares the layer of the first."""
        if node.op == "placeholder":
            self.stops[node] = 0
        elif node.op == "call_module" and str(node.target) in self._named:
            end = cast(fx.Node, node.args[0])
            if end in self.varying:
                self.stops[node] = self._layer(end, self._named[str(node.target)])
        if node in self.stops or any(n in self.varying for n in node.all_input_nodes):
            self.varying.add(node)
        if node.op == "output":
            self.ends.append(cast(fx.Node, node.args[0]))

    def _layer(self, end: fx.Node, activation: Activation) -> int:
        """The number of the layer that applies an activation to a node's result."""
        before = self.stops.get(end, 0)
        if before and activation is RELU and self.activations[before - 1] is RELU:
            return before
        layers = list(zip(self.ends, self.activations, strict=True))
        if (end, activation) in layers:
            return layers.index((end, activation)) + 1
        self.ends.append(end)
        self.activations.append(activation)
        return len(self.ends)

    def cut(self, end: fx.Node) -> AffinePart:
        """The affine part that ends in a node."""
        inside: set[fx.Node] = set()
        found: set[int] = set()
        todo = [end]
        while todo:
            node = todo.pop()
            if node in self.stops:
                found.add(self.stops[node])
            elif node not in inside:
                inside.add(node)
                todo.extend(node.all_input_nodes)
        ordered = tuple(node for node in self.module.graph.nodes if node in inside)
        return AffinePart(end, tuple(sorted(found)), ordered)

    def extract(self, module: fx.GraphModule, cut: AffinePart) -> fx.GraphModule:
        """The part of a module between a cut's sources and its end.

        The module has the same nodes as this graph's, in the same order.
        """
        twins = self._twins(module)
        graph = fx.Graph()
        places = {s: graph.placeholder(f"source_{s}") for s in cut.sources}
        copies = {twins[node]: places[s] for node, s in self._sources(cut)}
        for node in cut.inside:
            copies[twins[node]] = graph.node_copy(twins[node], lambda n: copies[n])
        graph.output(copies[twins[cut.end]])
        return fx.GraphModule(module, graph)

    def at_zero(self, module: fx.GraphModule, cut: AffinePart) -> Tensor:
        """The result [outputs] of a map if all its sources are 0."""
        sizes = (prod(self.shapes[s]) for s in cut.sources)
        return self.at(module, cut, [torch.zeros(size, dtype=torch.float64) for size in sizes])

    def at(self, module: fx.GraphModule, cut: AffinePart, values: Sequence[Tensor]) -> Tensor:
        """The result [outputs] of a map for one value [n_s] per source."""
        twins = self._twins(module)
        runner = fx.Interpreter(module)
        given = dict(zip(cut.sources, values, strict=True))
        for node, s in self._sources(cut):
            runner.env[twins[node]] = given[s].reshape(self.shapes[s])
        for node in cut.inside:
            runner.env[twins[node]] = runner.run_node(twins[node])
        return cast(Tensor, runner.env[twins[cut.end]]).reshape(-1).clone()

    def _sources(self, cut: AffinePart) -> Iterator[tuple[fx.Node, int]]:
        return ((node, s) for node, s in self.stops.items() if s in cut.sources)

    def _twins(self, module: fx.GraphModule) -> dict[fx.Node, fx.Node]:
        if module not in self._known_twins:
            pairs = zip(self.module.graph.nodes, module.graph.nodes, strict=True)
            self._known_twins[module] = dict(pairs)
        return self._known_twins[module]


class _Shapes(fx.Interpreter):
    """Runs a graph and notes each node's shape."""

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        n.meta["shape"] = tuple(result.shape) if isinstance(result, Tensor) else None
        return result


def _note_shapes(module: fx.GraphModule, input_shape: tuple[int, ...]) -> None:
    try:
        _Shapes(module).run(torch.zeros(input_shape, dtype=torch.float64))
    except Exception as error:  # whatever torch raises where shapes do not fit
        reason = one_line(error)
        raise UnsupportedError(f"the converted network does not run: {reason}") from error
