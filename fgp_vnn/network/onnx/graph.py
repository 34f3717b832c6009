"""An ONNX graph in the few terms that loading needs: nodes, constants, shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from fgp_vnn.base.errors import UnsupportedError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

RESHAPES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
_SMALL = 1000  # entries of a constant that may determine shapes
_MOST = 1 << 24  # entries of a tensor that depends on the input: float32 integers are exact so far


@dataclass
class Graph:
    """One input, one output, and nodes in topological order.

    All floating-point constants are float64, so that whatever is computed from them at loading
    time is exact to double precision.
    """

    nodes: list[NodeProto]
    constants: dict[str, Array]
    input: str
    input_shape: tuple[int, ...]
    output: str
    opset: int
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of all tensors
    _count: int = 0

    def shape(self, name: str) -> tuple[int, ...]:
        if name in self.constants:
            return tuple(self.constants[name].shape)
        if name not in self.shapes:
            for node in self.nodes:
                if node.op_type in _IN_PARTS:  # the shapes of their results are not inferred
                    raise UnsupportedError(not_supported(node))
            raise UnsupportedError(
                f"the shape of tensor {name!r} cannot be determined from the file"
            )
        return self.shapes[name]

    def uniform(self, name: str, other: str) -> float | None:
        """The value of all entries of a constant; None if they differ, or if the constant does not
        broadcast to the shape of the other tensor."""
        array = self.constants.get(name)
        if array is None or not array.size or (array != array.flat[0]).any():
            return None
        shape = self.shape(other)
        fits = np.broadcast_shapes(array.shape, shape) == shape
        return float(array.flat[0]) if fits else None

    def constant(self, array: Any, hint: str = "constant") -> str:
        """Add a constant under an unused name, and return that name."""
        name = self.fresh(hint)
        self.constants[name] = np.asarray(array)
        return name

    def fresh(self, hint: str) -> str:
        """An unused tensor name."""
        self._count += 1
        while (name := f"{hint}_{self._count}") in self.names:
            self._count += 1
        self.names.add(name)
        return name

    def variables(self) -> set[str]:
        """The tensors that depend on the input."""
        found = {self.input}
        for node in self.nodes:
            if any(name in found for name in node.input):
                found.update(node.output)
        return found

    def fixed_but_first(self, node: NodeProto) -> bool:
        """Whether all operands of a node but the first are constants."""
        return all(name in self.constants for name in node.input[1:] if name)

    @property
    def makers(self) -> dict[str, NodeProto]:
        """The node that computes each tensor."""
        return {name: node for node in self.nodes for name in node.output}

    def prune(self) -> None:
        """Drop the nodes that the output does not need."""
        self.nodes = needed_nodes(self.nodes, [self.output])
        needed = {self.output, *(name for node in self.nodes for name in node.input)}
        self.constants = {name: a for name, a in self.constants.items() if name in needed}

    def model(self, *, declared: Collection[str] = (), single: bool = False) -> ModelProto:
        """The graph as an ONNX model in double precision, or with `single` in float32 as in the
        file, with the constants that it reads. Constants in `declared`, whose values are not needed
        and slow to write, become further inputs."""
        kind = TensorProto.FLOAT if single else TensorProto.DOUBLE
        read = {self.output, *(name for node in self.nodes for name in node.input)} - {*declared}
        constants = {n: a for n, a in self.constants.items() if n in read}
        if single:
            constants = {n: narrowed(a) for n, a in constants.items()}
        inputs = [(self.input, kind, self.input_shape)]
        for name in declared:
            array = self.constants[name]
            floats = array.dtype.kind == "f"
            given = kind if floats else helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append((name, given, array.shape))
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(*given) for given in inputs],
            [helper.make_tensor_value_info(self.output, kind, None)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )

    def infer_shapes(self) -> None:
        """Fill `shapes` with the shapes that ONNX infers without running the network.

        The model is in single precision, as the scales of a Resize have to be.
        """
        large = {name for name, array in self.constants.items() if array.size > _SMALL}
        model = self.model(declared=large, single=True)
        proto = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        for value in (*proto.input, *proto.value_info, *proto.output):
            tensor = value.type.tensor_type
            dims = tensor.shape.dim
            if tensor.HasField("shape") and all(d.HasField("dim_value") for d in dims):
                shape = tuple(d.dim_value for d in dims)
                if not 0 < prod(shape) <= _MOST and value.name not in self.constants:
                    raise UnsupportedError(f"{value.name!r} has {prod(shape)} entries")
                self.shapes[value.name] = shape

    def skip_copies(self) -> None:
        """Drop every Identity, and every Relu of a Relu: they return their operand."""
        same: dict[str, str] = {}
        active: set[str] = set()
        kept = []
        for node in self.nodes:
            for i, name in enumerate(node.input):
                node.input[i] = same.get(name, name)
            if node.op_type == "Identity" or (node.op_type == "Relu" and node.input[0] in active):
                (original,), (copy,) = node.input, node.output
                same[copy] = original
                if copy in self.shapes and original not in self.constants:
                    self.shapes.setdefault(original, self.shapes[copy])
                continue
            kept.append(node)
            if node.op_type == "Relu":
                active.add(node.output[0])
        self.nodes = kept
        self.output = same.get(self.output, self.output)

    def replace(self, rule: Callable[[NodeProto], Iterable[NodeProto] | None]) -> None:
        """Replace each node by the nodes that `rule` returns; None keeps the node."""
        result: list[NodeProto] = []
        for node in self.nodes:
            replacement = rule(node)
            result.extend([node] if replacement is None else replacement)
        self.nodes = result


def inputs_of(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The inputs of a file's graph, without the constants that older files list there too."""
    constants = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


def needed_nodes(nodes: Sequence[NodeProto], outputs: Iterable[str]) -> list[NodeProto]:
    """The nodes that the outputs depend on, in their order."""
    needed, kept = {*outputs}, []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    return kept[::-1]


def last_node(nodes: Iterable[NodeProto], output: str) -> NodeProto | None:
    """The node that computes an output, before all reshapes and copies at the end."""
    makers = {name: node for node in nodes for name in node.output}
    node = makers.get(output)
    while node is not None and node.op_type in {"Identity", *RESHAPES}:
        node = makers.get(node.input[0])
    return node


def attributes(node: NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def axes_of(graph: Graph, node: NodeProto) -> list[int]:
    """The axes that a reduction runs over, from an attribute or an operand, none negative."""
    rank, given = len(graph.shape(node.input[0])), attributes(node)
    axes = given.get("axes")
    if axes is None and len(node.input) > 1 and node.input[1]:
        if node.input[1] not in graph.constants:
            raise UnsupportedError(f"{label(node)} has axes that are not constant")
        axes = graph.constants[node.input[1]].tolist()
    if not axes:
        return [] if given.get("noop_with_empty_axes") else list(range(rank))
    return sorted(int(axis) % rank for axis in axes)


def make_node(kind: str, inputs: Sequence[str], output: str, **attribute: Any) -> NodeProto:
    """A node with one output."""
    return helper.make_node(kind, list(inputs), [output], **attribute)


def label(node: NodeProto) -> str:
    """The name of a node in error messages."""
    return f"operator {node.op_type} (node {node.name or node.output[0]!r})"


# Operators of the newest opsets, which older ones write as several operators.
_IN_PARTS = frozenset({"Attention", "GroupNormalization", "RMSNormalization", "RotaryEmbedding"})


def not_supported(node: NodeProto) -> str:
    """The message that an operator is not supported, and what the user can do."""
    told = "docs/howto/model.md lists those that are"
    if node.op_type in _IN_PARTS:
        told = "export with opset_version=18, which expresses it by others"
    return f"{label(node)} is not supported; {told}"


def narrowed(array: Array) -> Array:
    """Floating-point values as float32, infinite where they are too large for it."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32) if array.dtype.kind == "f" else array
