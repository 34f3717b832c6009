"""From a graph of affine operators and activations to z_k = F_k(x, a_1, ..., a_{k-1})."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import prod

from onnx import NodeProto
from torch import Tensor, fx

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.maps.densify import as_dense
from fgp_vnn.network.maps.filters import filter_matrices
from fgp_vnn.network.maps.kinds import kind
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.network.onnx.affinity import absolute_part, linear_part
from fgp_vnn.network.onnx.convert import convert
from fgp_vnn.network.onnx.cuts import AffinePart, CutGraph
from fgp_vnn.network.onnx.graph import Graph
from fgp_vnn.network.onnx.products import PRODUCTS, RESHAPES, composed, factors_of, roundings, sizes
from fgp_vnn.network.onnx.self_check import check_adjoint, check_matrix
from fgp_vnn.network.onnx.smooth import activation_of, stand_in

_MOST_COLUMNS = 20_000  # of a matrix: the program is run once for each column
_PRODUCT_FACTOR = 25  # how much larger a matrix may be if the file has matrices too

_ELEMENTWISE = {"Add", "Div", "Mul", "Neg", "Sub"}


def normal_form(
    graph: Graph, *, dense_entries: int, watch: Callable[[], None] = lambda: None
) -> tuple[Network, list[str]]:
    """The network of a graph that `check_affine` accepts, and the tensors that its maps compute.

    Affine maps of up to `dense_entries` matrix entries are stored as matrices. `watch` is called
    before each of them and within its check.
    """
    reader = _Reader(graph, dense_entries)
    maps: list[AffineMap] = []
    for end in reader.cuts.ends:
        watch()
        affine = reader.affine_map(end)
        if isinstance(affine, Operator):
            check_adjoint(affine, watch)
        maps.append(affine)
    *layers, output = maps
    activations = tuple(reader.cuts.activations)
    network = Network(tuple(layers), output, prod(graph.input_shape), activations)
    return network, reader.tensors()


def programs(graph: Graph) -> tuple[list[Operator], list[str]]:
    """The maps of `normal_form` as programs of the file's operators, and the tensors that they
    compute."""
    reader = _Reader(graph, 0)
    return [reader.operator(end) for end in reader.cuts.ends], reader.tensors()


def _named(graph: Graph) -> tuple[Graph, dict[str, Activation]]:
    """A copy of the graph whose nodes have the names that they will have in the torch graph, and
    the activations by these names; operators that have a torch module stand in for activations.

    An Identity at the end gives the output a node of its own: the converter takes all outputs of
    the last node, and needs a node even if the output is the input.
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
        # Each use of a constant has its own copy: in the linear part only some of them become 0.
        for j, name in enumerate(copy.input):
            if name in used:
                copy.input[j] = result.constant(graph.constants[name])
            used |= {name} & graph.constants.keys()
    result.output = output
    return result, activations


class _Reader:
    """Makes the affine maps of an ONNX graph."""

    def __init__(self, graph: Graph, dense_entries: int) -> None:
        graph, activations = _named(graph)
        self._graph = graph
        self._dense_entries = dense_entries
        self.cuts = CutGraph(convert(graph), graph.input_shape, activations)

    def tensors(self) -> list[str]:
        """The graph's names of the tensors that the maps compute."""
        made: dict[str, str] = {node.name: node.output[0] for node in self._graph.nodes}
        last = self._graph.nodes[-1]  # the Identity that `_named` has added
        made[last.name] = last.input[0]
        found = []
        for end in self.cuts.ends:
            name = self._graph.input if end.op == "placeholder" else made.get(str(end.target))
            if name is None:
                raise UnsupportedError(f"the tensor {end.name!r} is not one of the file's")
            found.append(name)
        return found

    @cached_property
    def _linear(self) -> fx.GraphModule:
        return convert(linear_part(self._graph))

    @cached_property
    def _absolute(self) -> fx.GraphModule:
        return convert(absolute_part(self._graph))

    def affine_map(self, end: fx.Node) -> AffineMap:
        """The map that ends in a node: as matrices if they are small enough, else as a program."""
        cut = self.cuts.cut(end)
        bias = self._bias(cut)
        columns = sum(prod(self.cuts.shapes[s]) for s in cut.sources)
        if columns > _MOST_COLUMNS or bias.numel() * columns > self._dense_limit(cut):
            return self.operator(end)
        found = self._matrix(cut, bias)
        check_matrix(found, lambda values: self.cuts.at(self.cuts.module, cut, values))
        return found

    def _matrix(self, cut: AffinePart, bias: Tensor) -> Dense:
        """The matrices of a map, filled in from the file's numbers where these can be found."""
        factors = factors_of(self.cuts, cut)
        if factors:
            offset = self._offset_terms(cut, copies=len(factors) == 1)
            terms = None if offset is None else sizes(factors, offset)
            rounded = 0 if terms is None else roundings(factors) + len(cut.inside)
            return Dense(cut.sources, (composed(factors),), bias, terms=terms, rounded=rounded)
        filters = filter_matrices(self.cuts.module, cut.end, self.cuts.stops)
        if filters is not None:
            weights = tuple(filters[s] for s in cut.sources)
            offset = self._offset_terms(cut, copies=True)
            made_of = None if offset is None else (*(weight.abs() for weight in weights), offset)
            rounded = 0
            if made_of is not None:
                rounded = 2 * sum(weight.shape[1] for weight in weights) + len(cut.inside)
            return Dense(cut.sources, weights, bias, terms=made_of, rounded=rounded)
        return as_dense(self.operator(cut.end))

    def operator(self, end: fx.Node) -> Operator:
        """The map that ends in a node, as a program."""
        cut = self.cuts.cut(end)
        shapes = tuple(self.cuts.shapes[s] for s in cut.sources)
        linear, absolute = (self.cuts.extract(m, cut) for m in (self._linear, self._absolute))
        return Operator(cut.sources, linear, absolute, shapes, self._bias(cut))

    def _bias(self, cut: AffinePart) -> Tensor:
        return self.cuts.at_zero(self.cuts.module, cut)

    def _offset_terms(self, cut: AffinePart, *, copies: bool) -> Tensor | None:
        """Sums of the absolute values of the bias's terms; None if the bias and all matrix entries
        are copies of numbers in the file."""
        adding = [i for i, n in enumerate(cut.inside) if kind(n) in ("Add", "Sub", "Gemm", "Conv")]
        later = cut.inside[adding[0] + 1 :] if adding else ()
        if copies and len(adding) <= 1 and all(kind(n) in RESHAPES | {None} for n in later):
            return None
        return self.cuts.at_zero(self._absolute, cut)

    def _dense_limit(self, cut: AffinePart) -> int:
        types = {kind(node) for node in cut.inside}
        products = types & PRODUCTS and types <= PRODUCTS | RESHAPES | _ELEMENTWISE | {None}
        return self._dense_entries * (_PRODUCT_FACTOR if products else 1)
