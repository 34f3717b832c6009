"""From a graph of affine operators and ReLUs to z_k = F_k(x, a_1, ..., a_{k-1})."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, cast

import torch
from onnx import NodeProto
from torch import Tensor, fx, nn

from fgp_vnn.errors import UnsupportedError
from fgp_vnn.network.affinity import absolute_part, linear_part
from fgp_vnn.network.convert import convert
from fgp_vnn.network.graph import Graph
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.network.operator import Operator

_DENSE_ENTRIES = 2_000_000  # an affine map of up to this many entries becomes a matrix
_PRODUCT_ENTRIES = 50_000_000  # and one of up to this many if it is a product anyway
_CHUNK_ENTRIES = 4_000_000

_PRODUCTS = {"Gemm", "MatMul"}
_RESHAPES = {"Identity", "Reshape"}
_ELEMENTWISE = {"Add", "Div", "Mul", "Neg", "Sub", "Sum"}


@dataclass(frozen=True)
class _Cut:
    """An affine map's place in the torch graph: the node it ends at and the nodes it reads."""

    end: fx.Node
    sources: tuple[int, ...]
    inside: tuple[fx.Node, ...]  # in order, the ones between


def normal_form(graph: Graph) -> Network:
    """The network of a graph that `check_affine` has passed."""
    graph = _named(graph)
    reader = _Reader(graph)
    layers = [reader.affine_map(end) for end in reader.ends[:-1]]
    inputs = prod(graph.input_shape)
    return Network(tuple(layers), reader.affine_map(reader.ends[-1]), inputs)


def _named(graph: Graph) -> Graph:
    """Give each node a name by which the torch graph's nodes are found again.

    The Identity at the end gives the output a node of its own: onnx2torch takes all of the last
    node's outputs, and needs a node even where the output is the input.
    """
    output = graph.fresh("output")
    end = NodeProto(op_type="Identity", input=[graph.output], output=[output])
    nodes = []
    for i, node in enumerate([*graph.nodes, end]):
        copy = NodeProto.FromString(node.SerializeToString())
        copy.name = f"n{i}"
        nodes.append(copy)
    return replace(graph, nodes=nodes, output=output)


class _Shapes(fx.Interpreter):
    """Runs a graph on zeros and notes each node's shape."""

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        n.meta["shape"] = tuple(result.shape) if isinstance(result, Tensor) else None
        return result


class _Reader:
    """Cuts the torch graph of an ONNX graph at its ReLUs."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._types = {node.name: node.op_type for node in graph.nodes}
        self._module = convert(graph.model())
        self._shaped(self._module)
        self._stops = self._find_stops()
        self._shapes = self._source_shapes()

    @property
    def ends(self) -> list[fx.Node]:
        """What each ReLU layer is applied to, then the output."""
        return self._ends

    @cached_property
    def _linear(self) -> fx.GraphModule:
        return convert(linear_part(self._graph).model())

    @cached_property
    def _absolute(self) -> fx.GraphModule:
        return convert(absolute_part(self._graph).model())

    def affine_map(self, end: fx.Node) -> AffineMap:
        cut = self._cut(end)
        shapes = tuple(self._shapes[s] for s in cut.sources)
        zeros = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
        bias = cast(Tensor, self._extract(self._module, cut)(*zeros)).reshape(-1).clone()
        factors = self._products(cut)
        if factors:
            sizes = [factor.abs() for factor in factors]
            absolute = self._extract(self._absolute, cut)(*zeros).reshape(-1)
            terms = (_composed(sizes), absolute) if len(factors) > 1 else None
            return Dense(cut.sources, (_composed(factors),), bias, terms=terms)
        linear, absolute = (self._extract(m, cut) for m in (self._linear, self._absolute))
        operator = Operator(cut.sources, linear, absolute, shapes, bias)
        entries = bias.numel() * sum(prod(shape) for shape in shapes)
        types = {self._type(node) for node in cut.inside}
        products = types <= _PRODUCTS | _RESHAPES | _ELEMENTWISE | {None}
        if entries <= (_PRODUCT_ENTRIES if products else _DENSE_ENTRIES):
            return _dense(operator)
        return operator

    def _shaped(self, module: fx.GraphModule) -> None:
        x = torch.zeros(self._graph.input_shape, dtype=torch.float64)
        try:
            _Shapes(module).run(x)
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise UnsupportedError(f"the converted network does not run: {reason}") from error

    def _find_stops(self) -> dict[fx.Node, int]:
        """The nodes where affine maps begin, by source number; 0 is the input.

        A ReLU of a ReLU, and a second ReLU of the same value, are the first one again.
        """
        stops: dict[fx.Node, int] = {}
        varying: set[fx.Node] = set()
        self._ends: list[fx.Node] = []
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                stops[node] = 0
            elif node.op == "output":
                self._ends.append(node.args[0])
            elif self._type(node) == "Relu" and node.args[0] in varying:
                stops[node] = self._source_of(node.args[0], stops)
            if node in stops or any(n in varying for n in node.all_input_nodes):
                varying.add(node)
        self._varying = varying
        return stops

    def _source_of(self, end: fx.Node, stops: dict[fx.Node, int]) -> int:
        if stops.get(end, 0) > 0:
            return stops[end]
        if end not in self._ends:
            self._ends.append(end)
        return self._ends.index(end) + 1

    def _source_shapes(self) -> dict[int, tuple[int, ...]]:
        return {source: node.meta["shape"] for node, source in self._stops.items()}

    def _type(self, node: fx.Node) -> str | None:
        """The ONNX operator of a node; None for constants and the picking of one output."""
        return self._types.get(str(node.target)) if node.op == "call_module" else None

    def _cut(self, end: fx.Node) -> _Cut:
        inside: set[fx.Node] = set()
        found: set[int] = set()
        todo = [end]
        while todo:
            node = todo.pop()
            if node in self._stops:
                found.add(self._stops[node])
            elif node not in inside:
                inside.add(node)
                todo.extend(node.all_input_nodes)
        ordered = tuple(node for node in self._module.graph.nodes if node in inside)
        return _Cut(end, tuple(sorted(found)), ordered)

    def _extract(self, module: fx.GraphModule, cut: _Cut) -> fx.GraphModule:
        """The part of a module between a cut's sources and its end.

        The linear module has the same nodes as the affine one, in the same order.
        """
        twins = dict(zip(self._module.graph.nodes, module.graph.nodes, strict=True))
        graph = fx.Graph()
        places = {s: graph.placeholder(f"source_{s}") for s in cut.sources}
        copies = {twins[node]: places[s] for node, s in self._stops.items() if s in places}
        for node in cut.inside:
            copies[twins[node]] = graph.node_copy(twins[node], lambda n: copies[n])
        graph.output(copies[twins[cut.end]])
        return fx.GraphModule(module, graph)

    def _products(self, cut: _Cut) -> list[Tensor]:
        """The matrices of a chain of products of vectors, the last one first; [] if it is none."""
        factors: list[Tensor] = []
        for node in cut.inside:
            varying = [n for n in node.all_input_nodes if n in self._varying]
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


def _composed(factors: list[Tensor]) -> Tensor:
    """The product of matrices; of a single one, an exact copy."""
    if len(factors) == 1:
        return factors[0].clone(memory_format=torch.contiguous_format)
    product: Tensor = torch.linalg.multi_dot(factors)
    return product.contiguous()


def _dense(operator: Operator) -> Dense:
    """The matrices of an operator, and of its terms where an entry is made of several."""
    none = [operator.bias.new_zeros(prod(shape)) for shape in operator.shapes]
    offset = operator.magnitude(none)
    weights = _matrices(operator, operator.linear)
    sums = _matrices(operator, lambda values: operator.magnitude(values) - offset)
    terms = None if all(map(_same_size, weights, sums)) else (*sums, offset)
    return Dense(operator.sources, weights, operator.bias, terms=terms)


def _same_size(weight: Tensor, terms: Tensor) -> bool:
    return bool((weight.abs() == terms).all())


def _matrices(
    operator: Operator, apply: Callable[[Sequence[Tensor]], Tensor]
) -> tuple[Tensor, ...]:
    """A matrix [outputs, n_s] per source, column by column: exact copies of single weights."""
    weights = []
    sizes = [prod(shape) for shape in operator.shapes]
    for which, size in enumerate(sizes):
        columns = []
        for units in _identity(size, max(size, operator.outputs)):
            values = [units if s == which else units.new_zeros(1, n) for s, n in enumerate(sizes)]
            columns.append(apply(values))
        weights.append(torch.cat(columns).T.contiguous())
    return tuple(weights)


def _identity(size: int, width: int) -> Iterator[Tensor]:
    """The rows of the identity matrix, in chunks that bound memory."""
    step = max(1, _CHUNK_ENTRIES // width)
    for start in range(0, size, step):
        stop = min(size, start + step)
        units = torch.zeros(stop - start, size, dtype=torch.float64)
        units[:, start:stop] = torch.eye(stop - start, dtype=torch.float64)
        yield units
