"""Convert a model with several inputs or outputs, or open sizes, to one input and one output.

The chosen inputs are joined into one vector, and the other inputs become constants; the chosen
outputs are concatenated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.words import plural
from fgp_vnn.network.onnx.edits import Edit
from fgp_vnn.network.onnx.graph import inputs_of, needed_nodes

Chosen = int | str | Sequence[int | str]  # one, several, or "all"
Example = Any  # an array, a tuple of one array for each input, or arrays by names of inputs


@dataclass(frozen=True, eq=False)
class Choice:
    """Which inputs vary, which outputs count, and an example input of the right shape."""

    inputs: Chosen | None = None
    outputs: Chosen | None = None
    example: Example | None = None


def with_one_input_and_output(model: ModelProto, choice: Choice) -> ModelProto:
    """The model with one input and one output; the model itself if it already has that form."""
    inputs = inputs_of(model.graph)
    outputs = list(model.graph.output)
    varying = _picked(inputs, choice.inputs, "input")
    counted = _picked(outputs, choice.outputs, "output")
    examples = _examples(inputs, choice.example)
    shapes = {value.name: shape_of(value, examples.get(value.name)) for value in inputs}
    single = len(inputs) == len(outputs) == 1
    if single and not _open(inputs[0]):
        return model
    result: ModelProto = ModelProto.FromString(model.SerializeToString())
    graph = result.graph
    _keep_outputs(graph, counted)
    _prune(graph)
    _join_inputs(graph, {value.name: shapes[value.name] for value in varying})
    _fix_inputs(graph, [value for value in inputs if value not in varying], shapes, examples)
    return result


def _picked(values: list[ValueInfoProto], names: Chosen | None, what: str) -> list[ValueInfoProto]:
    """The values with these names or numbers; None picks the only one, and "all" picks all."""
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
    """The given arrays by the names of the inputs."""
    if example is None:
        return {}
    if isinstance(example, Mapping):
        given = dict(example)
    elif isinstance(example, tuple):
        if len(example) != len(inputs):
            has = f"x has {plural(len(example), 'array')}"
            raise InputError(f"{has}, the network {plural(len(inputs), 'input')}")
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


def shape_of(value: ValueInfoProto, example: Any | None = None) -> tuple[int, ...]:
    """The shape of one input; open sizes are taken from the example, an open batch size is 1."""
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


def _keep_outputs(graph: GraphProto, counted: list[ValueInfoProto]) -> None:
    """Keep only these outputs, concatenated if there are several."""
    edit, kept = Edit(graph), counted
    if len(counted) > 1:
        parts = [edit.put("Reshape", value.name, [1, -1]) for value in counted]
        kind = counted[0].type.tensor_type.elem_type
        kept = [helper.make_tensor_value_info(edit.put("Concat", *parts, axis=1), kind, None)]
    del graph.output[:]
    graph.output.extend(kept)
    graph.node.extend(edit.nodes)


def _prune(graph: GraphProto) -> None:
    """Drop the nodes that no output needs, unless a node contains a subgraph."""
    if any(a.type in (a.GRAPH, a.GRAPHS) for node in graph.node for a in node.attribute):
        return
    kept = needed_nodes(list(graph.node), (value.name for value in graph.output))
    del graph.node[:]
    graph.node.extend(kept)


def _fix_inputs(
    graph: GraphProto,
    fixed: list[ValueInfoProto],
    shapes: Mapping[str, tuple[int, ...]],
    examples: Mapping[str, Any],
) -> None:
    """Make these inputs constants, with the values of the examples."""
    for value in fixed:
        name, example = value.name, examples.get(value.name)
        if example is None:
            raise InputError(f"input {name!r} does not vary, and x does not give its value")
        if example.size != prod(shapes[name]):
            raise InputError(f"input {name!r} does not vary, but x gives it many values")
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = example.reshape(shapes[name]).astype(kind)
        graph.initializer.append(numpy_helper.from_array(array, name))


def _join_inputs(graph: GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Replace the graph's inputs by one: the concatenation of the inputs with these names."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in inputs_of(graph)}
    constants = {tensor.name for tensor in graph.initializer}
    listed = [value for value in graph.input if value.name in constants]
    edit = Edit(graph)
    if len(shapes) == 1:
        ((name, shape),) = shapes.items()
        first = helper.make_tensor_value_info(name, kinds[name], shape)
    else:
        name, start = edit.fresh("inputs"), 0
        for target, shape in shapes.items():
            places = np.arange(start, start + prod(shape))
            edit.put("Reshape", edit.put("Gather", name, places, axis=1), shape, output=target)
            start += prod(shape)
        first = helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, start))
    nodes = [*edit.nodes, *graph.node]
    del graph.input[:], graph.node[:]
    graph.input.extend([first, *listed])
    graph.node.extend(nodes)
