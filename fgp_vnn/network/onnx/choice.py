"""A model with several inputs or outputs, or of open sizes, as one with one input and one output.

Inputs that are chosen together become one vector, the others keep the values that they are given;
outputs that are chosen together are written one behind the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.program import nodes_in

Chosen = int | str | Sequence[int | str]  # one, several, or "all"
Example = Any  # an array, a tuple of one array for each input, or arrays by names of inputs


@dataclass(frozen=True, eq=False)
class Choice:
    """Which inputs vary, which outputs count, and an input of the right shape."""

    inputs: Chosen | None = None
    outputs: Chosen | None = None
    example: Example | None = None


def with_one_input_and_output(model: ModelProto, choice: Choice) -> ModelProto:
    """The model with one input and one output; itself, if it is of that form already."""
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in stored]
    outputs = list(model.graph.output)
    varying = _picked(inputs, choice.inputs, "input")
    counted = _picked(outputs, choice.outputs, "output")
    examples = _examples(inputs, choice.example)
    shapes = {value.name: _shape(value, examples.get(value.name)) for value in inputs}
    single = len(inputs) == len(outputs) == 1
    if single and not _open(inputs[0]):
        return model
    result: ModelProto = ModelProto.FromString(model.SerializeToString())
    graph = result.graph
    taken = {name for node in nodes_in(graph) for name in (*node.input, *node.output)}
    writer = _Writer(graph, taken | {value.name for value in (*inputs, *outputs)})
    writer.outputs(counted)
    writer.prune()
    writer.inputs(inputs, varying, shapes, examples)
    return result


def _picked(values: list[ValueInfoProto], names: Chosen | None, what: str) -> list[ValueInfoProto]:
    """The values that are named, by name or number."""
    known = {value.name: value for value in values}
    listed = ", ".join(known) or "none"
    if names is None and len(values) != 1:
        raise UnsupportedError(
            f"the network has {len(values)} {what}s ({listed}); "
            f"choose with load_model(..., {what}s=...)"
        )
    if names is None or (names == "all" and "all" not in known):
        return values
    found = []
    for name in [names] if isinstance(names, int | str) else names:
        try:
            found.append(known[name] if isinstance(name, str) else values[name])
        except (LookupError, TypeError):
            raise InputError(f"the network has no {what} {name!r}; it has {listed}") from None
    if len({value.name for value in found}) != len(found) or not found:
        raise InputError(f"the {what}s {names!r} are not one or more different ones")
    return found


def _examples(inputs: list[ValueInfoProto], example: Example | None) -> dict[str, Any]:
    """An array for each input that has one."""
    if example is None:
        return {}
    if isinstance(example, Mapping):
        given = dict(example)
    elif isinstance(example, tuple):
        if len(example) != len(inputs):
            raise InputError(f"x has {len(example)} arrays, the network {len(inputs)} inputs")
        given = {value.name: array for value, array in zip(inputs, example, strict=True)}
    else:
        given = {inputs[0].name: example} if len(inputs) == 1 else {}
    if strange := given.keys() - {value.name for value in inputs}:
        raise InputError(f"the network has no input {min(strange)!r}")
    return {name: np.asarray(array) for name, array in given.items()}


def _open(value: ValueInfoProto) -> bool:
    """Whether a dimension other than the batch has no fixed size."""
    tensor = value.type.tensor_type
    return not tensor.HasField("shape") or any(d.dim_value <= 0 for d in tensor.shape.dim[1:])


def _shape(value: ValueInfoProto, example: Any | None) -> tuple[int, ...]:
    """The shape of one input; sizes that are open are those of the example, the batch is 1."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        if example is None:
            raise UnsupportedError(f"input {value.name!r} has no shape")
        return tuple(example.shape)
    sizes = [d.dim_value if d.HasField("dim_value") else 0 for d in tensor.shape.dim]
    if sizes and sizes[0] <= 0:
        sizes[0] = 1
    if example is not None and _open(value) and example.ndim in (len(sizes), len(sizes) - 1):
        given = example.shape[1 - len(sizes) :]
        if any(n not in (m, 0) for n, m in zip(sizes[1:], given, strict=True)):
            raise InputError(f"x of shape {example.shape} does not fit the input {value.name!r}")
        sizes[1:] = given
    if any(size <= 0 for size in sizes):
        raise UnsupportedError(
            f"input {value.name!r} has an open dimension beside the batch; "
            "load_model(..., x) takes it from an input x"
        )
    return tuple(sizes)


class _Writer:
    """Changes the ends of a graph in place."""

    def __init__(self, graph: Any, taken: set[str]) -> None:
        self._graph = graph
        self._taken = taken

    def outputs(self, counted: list[ValueInfoProto]) -> None:
        """Keep these outputs only, one behind the other if they are several."""
        kept = [ValueInfoProto.FromString(value.SerializeToString()) for value in counted]
        del self._graph.output[:]
        if len(kept) == 1:
            self._graph.output.append(kept[0])
            return
        flat = self._constant(np.asarray([1, -1], dtype=np.int64))
        parts = [self._fresh("part") for _ in kept]
        for value, part in zip(kept, parts, strict=True):
            self._graph.node.append(helper.make_node("Reshape", [value.name, flat], [part]))
        joined = self._fresh("joined")
        self._graph.node.append(helper.make_node("Concat", parts, [joined], axis=1))
        kind = kept[0].type.tensor_type.elem_type
        self._graph.output.append(helper.make_tensor_value_info(joined, kind, None))

    def prune(self) -> None:
        """Drop the nodes that no output needs, unless some hold graphs of their own."""
        nodes: list[NodeProto] = list(self._graph.node)
        if any(a.type in (a.GRAPH, a.GRAPHS) for node in nodes for a in node.attribute):
            return
        needed = {value.name for value in self._graph.output}
        kept = []
        for node in reversed(nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        del self._graph.node[:]
        self._graph.node.extend(kept[::-1])

    def inputs(
        self,
        inputs: list[ValueInfoProto],
        varying: list[ValueInfoProto],
        shapes: Mapping[str, tuple[int, ...]],
        examples: Mapping[str, Any],
    ) -> None:
        """Let these inputs vary, as one; the others are constants."""
        names = {value.name for value in inputs}
        listed = [v for v in self._graph.input if v.name not in names]  # initialisers
        del self._graph.input[:]
        for value in inputs:
            if value not in varying:
                self._fix(value, shapes[value.name], examples.get(value.name))
        if len(varying) == 1:
            name = varying[0].name
            kind = varying[0].type.tensor_type.elem_type
            first = helper.make_tensor_value_info(name, kind, shapes[name])
        else:
            first = self._split({value.name: shapes[value.name] for value in varying})
        self._graph.input.extend([first, *listed])

    def _fix(self, value: ValueInfoProto, shape: tuple[int, ...], example: Any | None) -> None:
        if example is None:
            raise InputError(f"input {value.name!r} does not vary, and x does not give its value")
        if example.size != prod(shape):
            raise InputError(f"input {value.name!r} does not vary, but x gives it many values")
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = example.reshape(shape).astype(kind)
        self._graph.initializer.append(numpy_helper.from_array(array, value.name))

    def _split(self, shapes: Mapping[str, tuple[int, ...]]) -> ValueInfoProto:
        """One input that holds several, one behind the other."""
        name, start, nodes = self._fresh("inputs"), 0, []
        for target, shape in shapes.items():
            size = prod(shape)
            places = self._constant(np.arange(start, start + size))
            part = self._fresh("part")
            sizes = self._constant(np.asarray(shape, dtype=np.int64))
            nodes.append(helper.make_node("Gather", [name, places], [part], axis=1))
            nodes.append(helper.make_node("Reshape", [part, sizes], [target]))
            start += size
        later = list(self._graph.node)
        del self._graph.node[:]
        self._graph.node.extend([*nodes, *later])
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, start))

    def _constant(self, array: Any) -> str:
        name = self._fresh("constant")
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def _fresh(self, hint: str) -> str:
        count = 0
        while (name := f"{hint}_{count}") in self._taken:
            count += 1
        self._taken.add(name)
        return name
