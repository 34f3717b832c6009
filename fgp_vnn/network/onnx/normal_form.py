"""From a graph of affine operators and activations to z_k = F_k(x, a_1, ..., a_{k-1})."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, cast

import torch
from onnx import NodeProto
from torch import Tensor, fx, nn

from fgp_vnn.base.errors import UnsupportedError, one_line
from fgp_vnn.base.rounding import unit
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.maps.densify import as_dense
from fgp_vnn.network.maps.filters import filter_matrices
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.network.onnx.affinity import absolute_part, linear_part
from fgp_vnn.network.onnx.convert import convert
from fgp_vnn.network.onnx.graph import Graph
from fgp_vnn.network.onnx.smooth import activation_of, stand_in

_MOST_COLUMNS = 20_000  # of a matrix: a program is run once for each
_PRODUCT_FACTOR = 25  # how much larger a matrix may be where the file has matrices too

_PRODUCTS = {"Gemm", "MatMul"}
_RESHAPES = {"Identity", "Reshape"}
_ELEMENTWISE = {"Add", "Div", "Mul", "Neg", "Sub"}


@dataclass(frozen=True)
class _Plan:
    """Where the torch graph is to be cut."""

    stops: dict[fx.Node, int]  # where affine maps begin, by source number; 0 is the input
    ends: list[fx.Node]  # what each activation is applied to, then the output
    activations: list[Activation]
    varying: set[fx.Node]  # what depends on the input


@dataclass(frozen=True)
class _Cut:
    """An affine map's place in the torch graph."""

    end: fx.Node
    sources: tuple[int, ...]
    inside: tuple[fx.Node, ...]  # what lies between, in order


def normal_form(graph: Graph, *, dense_entries: int) -> tuple[Network, list[str]]:
    """The network of a graph that `check_affine` has passed, and the tensors its maps end in.

    Affine maps of up to `dense_entries` matrix entries are stored as matrices.
    """
    reader = _Reader(graph, dense_entries)
    *layers, output = (reader.affine_map(end) for end in reader.plan.ends)
    activations = tuple(reader.plan.activations)
    network = Network(tuple(layers), output, prod(graph.input_shape), activations)
    return network, [reader.tensor(end) for end in reader.plan.ends]


class Absolute(NamedTuple):
    """A map by the absolute values of its terms, and the tensor of the graph that it ends in."""

    terms: Operator  # its `magnitude` adds up what the file's own operators add up
    end: str


def absolute_maps(graph: Graph) -> list[Absolute]:
    """The same maps as those of `normal_form`, as the file's operators compute them."""
    reader = _Reader(graph, 0)
    return [Absolute(reader.operator(end), reader.tensor(end)) for end in reader.plan.ends]


def _named(graph: Graph) -> tuple[Graph, dict[str, Activation]]:
    """Give each node a name by which the torch graph's nodes are found again; and the activations
    by these names, for which ReLUs and others that onnx2torch knows stand in.

    The Identity at the end gives the output a node of its own: onnx2torch takes all of the last
    node's outputs, and needs a node even where the output is the input.
    """
    output = graph.fresh("output")
    end = NodeProto(op_type="Identity", input=[graph.output], output=[output])
    nodes: list[NodeProto] = []
    activations: dict[str, Activation] = {}
    result, used = replace(graph, nodes=nodes, constants=dict(graph.constants)), set[str]()
    for i, node in enumerate([*graph.nodes, end]):
        activation = activation_of(graph, node)
        copy = NodeProto.FromString(node.SerializeToString())
        if activation is not None:
            activations[f"n{i}"] = activation
            copy = stand_in(node)
        copy.name = f"n{i}"
        nodes.append(copy)
        # Each use of a constant has its own: of its linear part, some are 0 and others are not.
        for j, name in enumerate(copy.input):
            if name in used:
                copy.input[j] = result.constant(graph.constants[name])
            used |= {name} & graph.constants.keys()
    result.output = output
    return result, activations


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


class _Reader:
    """Cuts the torch graph of an ONNX graph at its activations."""

    def __init__(self, graph: Graph, dense_entries: int) -> None:
        graph, self._activations = _named(graph)
        self._graph = graph
        self._dense_entries = dense_entries
        self._types = {node.name: node.op_type for node in graph.nodes}
        self._module = convert(graph)
        self._known_twins: dict[fx.GraphModule, dict[fx.Node, fx.Node]] = {}
        _note_shapes(self._module, graph.input_shape)
        self.plan = self._make_plan()
        self._shapes = {s: node.meta["shape"] for node, s in self.plan.stops.items()}

    def tensor(self, end: fx.Node) -> str:
        """The graph's name of what a node computes."""
        if end.op == "placeholder":
            return self._graph.input
        made: dict[str, str] = {node.name: node.output[0] for node in self._graph.nodes}
        last = self._graph.nodes[-1]  # the Identity at the end is not the graph's
        made[last.name] = last.input[0]
        if str(end.target) not in made:
            raise UnsupportedError(f"the tensor {end.name!r} is not one of the file's")
        return made[str(end.target)]

    @cached_property
    def _linear(self) -> fx.GraphModule:
        return convert(linear_part(self._graph))

    @cached_property
    def _absolute(self) -> fx.GraphModule:
        return convert(absolute_part(self._graph))

    def affine_map(self, end: fx.Node) -> AffineMap:
        cut = self._cut(end)
        shapes = tuple(self._shapes[s] for s in cut.sources)
        bias = self._bias(cut)
        entries = bias.numel() * sum(prod(shape) for shape in shapes)
        columns = sum(prod(shape) for shape in shapes)
        dense = entries <= self._dense_limit(cut) and columns <= _MOST_COLUMNS
        factors = self._products(cut) if dense else []
        if factors:
            offset = self._offset_terms(cut, copies=len(factors) == 1)
            sizes = None if offset is None else _sizes(factors, offset)
            return Dense(cut.sources, (_composed(factors),), bias, terms=sizes)
        filters = self._filters(cut) if dense else None
        if filters is not None:
            offset = self._offset_terms(cut, copies=True)
            terms = None if offset is None else (*(weight.abs() for weight in filters), offset)
            return Dense(cut.sources, filters, bias, terms=terms)
        operator = self.operator(end)
        return as_dense(operator) if dense else operator

    def operator(self, end: fx.Node) -> Operator:
        """The map to a node as a program."""
        cut = self._cut(end)
        shapes = tuple(self._shapes[s] for s in cut.sources)
        linear, absolute = (self._extract(m, cut) for m in (self._linear, self._absolute))
        return Operator(cut.sources, linear, absolute, shapes, self._bias(cut))

    def _bias(self, cut: _Cut) -> Tensor:
        return self._at_zero(self._module, cut)

    def _at_zero(self, module: fx.GraphModule, cut: _Cut) -> Tensor:
        """What a map gives if all that it reads is 0."""
        twins = self._twins(module)
        runner = fx.Interpreter(module)
        for node, s in self.plan.stops.items():
            if s in cut.sources:
                runner.env[twins[node]] = torch.zeros(self._shapes[s], dtype=torch.float64)
        for node in cut.inside:
            runner.env[twins[node]] = runner.run_node(twins[node])
        return cast(Tensor, runner.env[twins[cut.end]]).reshape(-1).clone()

    def _offset_terms(self, cut: _Cut, *, copies: bool) -> Tensor | None:
        """The sizes of what the offsets are made of; None where they, and all entries, are copies
        of the file's numbers."""
        adding = [n for n in cut.inside if self._type(n) in ("Add", "Sub", "Gemm", "Conv")]
        if copies and len(adding) <= 1:
            return None
        return self._at_zero(self._absolute, cut)

    def _filters(self, cut: _Cut) -> tuple[Tensor, ...] | None:
        found = filter_matrices(self._module, cut.end, self.plan.stops, self._type)
        return None if found is None else tuple(found[s] for s in cut.sources)

    def _dense_limit(self, cut: _Cut) -> int:
        types = {self._type(node) for node in cut.inside}
        products = types & _PRODUCTS and types <= _PRODUCTS | _RESHAPES | _ELEMENTWISE | {None}
        return self._dense_entries * (_PRODUCT_FACTOR if products else 1)

    def _make_plan(self) -> _Plan:
        """Cut at every activation; a ReLU of a ReLU, or what was met already, is that one again."""
        stops: dict[fx.Node, int] = {}
        layers: list[tuple[fx.Node, Activation]] = []
        varying: set[fx.Node] = set()
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                stops[node] = 0
            elif node.op == "call_module" and str(node.target) in self._activations:
                end, activation = node.args[0], self._activations[str(node.target)]
                before = stops.get(end, 0)
                if before and activation is RELU and layers[before - 1][1] is RELU:
                    stops[node] = before
                elif end in varying:
                    layers += [] if (end, activation) in layers else [(end, activation)]
                    stops[node] = layers.index((end, activation)) + 1
            if node in stops or any(n in varying for n in node.all_input_nodes):
                varying.add(node)
            if node.op == "output":
                last = node.args[0]
        return _Plan(stops, [*(e for e, _ in layers), last], [a for _, a in layers], varying)

    def _type(self, node: fx.Node) -> str | None:
        """The ONNX operator of a node; None for constants and the picking of one output."""
        return self._types.get(str(node.target)) if node.op == "call_module" else None

    def _cut(self, end: fx.Node) -> _Cut:
        inside: set[fx.Node] = set()
        found: set[int] = set()
        todo = [end]
        while todo:
            node = todo.pop()
            if node in self.plan.stops:
                found.add(self.plan.stops[node])
            elif node not in inside:
                inside.add(node)
                todo.extend(node.all_input_nodes)
        ordered = tuple(node for node in self._module.graph.nodes if node in inside)
        return _Cut(end, tuple(sorted(found)), ordered)

    def _extract(self, module: fx.GraphModule, cut: _Cut) -> fx.GraphModule:
        """The part of a module between a cut's sources and its end.

        The linear module has the same nodes as the affine one, in the same order.
        """
        twins = self._twins(module)
        graph = fx.Graph()
        places = {s: graph.placeholder(f"source_{s}") for s in cut.sources}
        copies = {twins[node]: places[s] for node, s in self.plan.stops.items() if s in places}
        for node in cut.inside:
            copies[twins[node]] = graph.node_copy(twins[node], lambda n: copies[n])
        graph.output(copies[twins[cut.end]])
        return fx.GraphModule(module, graph)

    def _twins(self, module: fx.GraphModule) -> dict[fx.Node, fx.Node]:
        if module not in self._known_twins:
            pairs = zip(self._module.graph.nodes, module.graph.nodes, strict=True)
            self._known_twins[module] = dict(pairs)
        return self._known_twins[module]

    def _products(self, cut: _Cut) -> list[Tensor]:
        """The matrices of a chain of products of vectors, the last one first; [] if it is none."""
        factors: list[Tensor] = []
        for node in cut.inside:
            varying = [n for n in node.all_input_nodes if n in self.plan.varying]
            if not varying:
                continue
            if len(varying) != 1 or len(cut.sources) != 1:
                return []
            size, kind = _size(varying[0]), self._type(node)
            if kind in _PRODUCTS:
                matrix = self._matrix(node, size)
                if matrix is None:
                    return []
                factors.insert(0, matrix)
            elif kind not in _RESHAPES and not (
                kind in ("Add", "Sub") and node.args[0] in varying and _size(node) == size
            ):
                return []
        return factors

    def _matrix(self, node: fx.Node, size: int) -> Tensor | None:
        """The matrix of a product's constant operand, if the other one is a vector."""
        module = self._module.get_submodule(str(node.target))
        if isinstance(module, nn.Linear):
            return module.weight.detach() if module.in_features == size else None
        constants = [a for a in node.args if isinstance(a, fx.Node) and a.op == "get_attr"]
        if self._type(node) != "MatMul" or len(constants) != 1:
            return None
        matrix = self._module.get_buffer(str(constants[0].target))
        rows = node.args[0] is constants[0]
        if matrix.dim() != 2 or matrix.shape[1 if rows else 0] != size:
            return None
        return matrix if rows else matrix.T


def _size(node: fx.Node) -> int:
    return prod(node.meta["shape"])


def _sizes(factors: list[Tensor], offset: Tensor) -> tuple[Tensor, Tensor]:
    """What the entries of a product and its offset are made of, with room for their roundings.

    A map counts the roundings of an entry by its columns; a product has as many as its factors
    have columns, and what underflow takes from it is carried on by the sizes of the factors.
    """
    scale = 1 + sum(factor.shape[1] for factor in factors) / factors[-1].shape[1]
    size = unit(offset.dtype)
    carried = 4 * scale * factors[-1].shape[1] * size.lost / size.eps
    for factor in factors:
        carried *= max(1.0, float(factor.abs().sum()))
    return scale * _composed([f.abs() for f in factors]) + carried, scale * offset + carried


def _composed(factors: list[Tensor]) -> Tensor:
    """The product of matrices; of a single one, an exact copy."""
    if len(factors) == 1:
        return factors[0].clone(memory_format=torch.contiguous_format)
    product: Tensor = torch.linalg.multi_dot(factors)
    return product.contiguous()
