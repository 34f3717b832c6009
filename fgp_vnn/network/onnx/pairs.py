"""A network at two inputs that differ in one entry, as one network, to verify monotonicity.

The input v has one entry more than the network's input. Entry i and the last entry of v are two
values of input i, in any order: the smaller one goes into one copy of the network and the larger
one into the other. The output is that of the second copy minus that of the first. Maxima and minima
are exact in float32, so both copies run at inputs of the network itself.
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import ModelProto, TensorProto, helper

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.clean import raise_opset
from fgp_vnn.network.onnx.edits import Edit, renamed
from fgp_vnn.network.onnx.graph import inputs_of


def paired(model: ModelProto, input_shape: tuple[int, ...], outputs: int, entry: int) -> ModelProto:
    """The network v [1, inputs + 1] -> outputs at the larger value of an entry of the flat input
    minus the outputs at the smaller one, [1, outputs]."""
    result = ModelProto()
    result.CopyFrom(raise_opset(model))
    graph, count = result.graph, prod(input_shape)
    given = [value.name for value in inputs_of(graph)]
    if len(given) != 1 or len(graph.output) != 1:
        raise UnsupportedError("monotonicity is for networks with one input and one output")
    edit = Edit(graph)
    pair, stem = edit.fresh("input"), edit.stem("pair_")
    row = edit.put("Reshape", edit.put("Gather", pair, [entry, count], axis=1), [1, 1, 2])
    high = edit.put("GlobalMaxPool", row)  # the maximum, exactly
    low = edit.put("Neg", edit.put("GlobalMaxPool", edit.put("Neg", row)))
    places = np.arange(count)
    chosen = edit.constant(np.where(places == entry, count + 1, places))
    shape = edit.constant(input_shape)
    made = {given[0], *(name for node in graph.node for name in node.output)}
    made -= {"", *(tensor.name for tensor in graph.initializer)}
    ends = []
    for prefix, value in ((f"{stem}low_", low), (f"{stem}high_", high)):
        names = {name: prefix + name for name in made}
        both = edit.put("Concat", pair, edit.put("Reshape", value, [1, 1]), axis=1)
        edit.put("Reshape", edit.put("Gather", both, chosen, axis=1), shape, output=names[given[0]])
        edit.nodes += [renamed(node, names, prefix) for node in graph.node]
        ends.append(edit.put("Reshape", names[graph.output[0].name], [1, outputs]))
    difference = edit.put("Sub", ends[1], ends[0])
    kept = [value for value in graph.input if value.name != given[0]]
    for field in ("node", "input", "output", "value_info", "quantization_annotation"):
        graph.ClearField(field)
    graph.node.extend(edit.nodes)
    vector = helper.make_tensor_value_info(pair, TensorProto.FLOAT, [1, count + 1])
    graph.input.extend([vector, *kept])
    end = helper.make_tensor_value_info(difference, TensorProto.FLOAT, [1, outputs])
    graph.output.append(end)
    return result
