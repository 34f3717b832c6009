"""A network at two inputs that differ in one entry, as one network: what monotonicity is about.

The input v has an entry more than that of the network. Entries i and the last of v are the two
values of entry i, in any order: the smaller one goes into one copy of the network and the larger
one into the other, and the output is the second copy's less the first one's. Maxima and minima are
exact in float32, so that both copies are run at inputs of the network itself.
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.clean import raise_opset
from fgp_vnn.network.onnx.copies import append_constant, renamed

_STEM = "pair_"


def paired(model: ModelProto, input_shape: tuple[int, ...], outputs: int, entry: int) -> ModelProto:
    """The network v [1, inputs + 1] -> outputs at the larger value less those at the smaller one
    [1, outputs], for an entry of the flat input."""
    result = ModelProto()
    result.CopyFrom(raise_opset(model))
    graph, count = result.graph, prod(input_shape)
    constants = {tensor.name for tensor in graph.initializer}
    given = [value.name for value in graph.input if value.name not in constants]
    if len(given) != 1 or len(graph.output) != 1:
        raise UnsupportedError("monotonicity is for networks with one input and one output")
    stem = _new_stem(graph)
    ends = [_copy(graph, f"{stem}{side}_", constants, given[0]) for side in ("low", "high")]
    nodes = [*_front(graph, stem, input_shape, entry, given[0])]
    nodes += [node for _, copies in ends for node in copies]
    flat = append_constant(graph, f"{stem}flat_shape", [1, outputs])
    for (end, _), side in zip(ends, ("low", "high"), strict=True):
        nodes.append(helper.make_node("Reshape", [end, flat], [f"{stem}flat_{side}"]))
    both = [f"{stem}flat_high", f"{stem}flat_low"]
    nodes.append(helper.make_node("Sub", both, [f"{stem}difference"]))
    kept = [value for value in graph.input if value.name in constants]
    for field in ("node", "input", "output", "value_info", "quantization_annotation"):
        graph.ClearField(field)
    graph.node.extend(nodes)
    vector = helper.make_tensor_value_info(f"{stem}input", TensorProto.FLOAT, [1, count + 1])
    graph.input.extend([vector, *kept])
    graph.output.append(
        helper.make_tensor_value_info(f"{stem}difference", TensorProto.FLOAT, [1, outputs])
    )
    return result


def _new_stem(graph: GraphProto) -> str:
    """What no name of the graph begins with: all that is new does."""
    stem, names = _STEM, {tensor.name for tensor in graph.initializer}
    names |= {tensor.values.name for tensor in graph.sparse_initializer}
    names |= {value.name for value in (*graph.input, *graph.output)}
    names |= {name for node in graph.node for name in (node.name, *node.input, *node.output)}
    while any(name.startswith(stem) for name in names):
        stem = f"_{stem}"
    return stem


def _front(
    graph: GraphProto, stem: str, shape: tuple[int, ...], entry: int, given: str
) -> list[NodeProto]:
    """From v [1, inputs + 1] to the input of each copy; a maximum is that of a pool.

    No new name begins with those of the copies, which end like those of the network.
    """
    count = prod(shape)
    both = append_constant(graph, f"{stem}places", [entry, count])
    window = append_constant(graph, f"{stem}window", [1, 1, 2])
    column = append_constant(graph, f"{stem}column", [1, 1])
    whole = append_constant(graph, f"{stem}shape", shape)
    places = np.where(np.arange(count) == entry, count + 1, np.arange(count))
    chosen = append_constant(graph, f"{stem}chosen", places)
    make, pair = helper.make_node, f"{stem}input"
    nodes = [
        make("Gather", [pair, both], [f"{stem}values"], axis=1),
        make("Reshape", [f"{stem}values", window], [f"{stem}row"]),
        make("Neg", [f"{stem}row"], [f"{stem}negative"]),
        make("GlobalMaxPool", [f"{stem}row"], [f"{stem}end_high"]),
        make("GlobalMaxPool", [f"{stem}negative"], [f"{stem}end_negative"]),
        make("Neg", [f"{stem}end_negative"], [f"{stem}end_low"]),
    ]
    for side in ("low", "high"):
        entry_of, all_of, vector_of = (
            f"{stem}{part}_{side}" for part in ("entry", "all", "vector")
        )
        nodes += [
            make("Reshape", [f"{stem}end_{side}", column], [entry_of]),
            make("Concat", [pair, entry_of], [all_of], axis=1),
            make("Gather", [all_of, chosen], [vector_of], axis=1),
            make("Reshape", [vector_of, whole], [f"{stem}{side}_{given}"]),
        ]
    return nodes


def _copy(
    graph: GraphProto, prefix: str, constants: set[str], given: str
) -> tuple[str, list[NodeProto]]:
    """The nodes once more with new names for all that they make; and the name of the output."""
    made = {name for node in graph.node for name in node.output} | {given}
    names = {name: prefix + name for name in made - constants if name}
    copies = [renamed(node, names, prefix) for node in graph.node]
    return names[graph.output[0].name], copies
