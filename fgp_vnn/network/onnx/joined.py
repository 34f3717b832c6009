"""Join several networks on shared inputs into one network, for a property of all of them.

The input v holds all distinct inputs, and each network reads its own entries of v. The output
concatenates the outputs of all networks and some entries of v.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, OperatorSetIdProto, TensorProto, helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.network.onnx.clean import raise_opset
from fgp_vnn.network.onnx.edits import Edit, renamed
from fgp_vnn.network.onnx.graph import inputs_of
from fgp_vnn.network.onnx.runtime import Floats, Program

_STEM = "joint_"


@dataclass(frozen=True, eq=False)
class Part:
    """One of the networks, and the positions of its input's entries in v."""

    name: str
    model: ModelProto  # with one input and one output
    shape: tuple[int, ...]  # of its input
    outputs: int
    places: tuple[int, ...]  # [inputs] positions in v


def joined(parts: Sequence[Part], inputs: int, passed: Sequence[int]) -> ModelProto:
    """The network v [1, inputs] -> [1, outputs of all parts and the entries `passed` of v]."""
    graph = GraphProto(name="joint")
    edit, given, ends = Edit(graph), f"{_STEM}input", []
    models = [raise_opset(part.model) for part in parts]
    for number, (part, model) in enumerate(zip(parts, models, strict=True)):
        prefix = f"{_STEM}{number}_"
        if model.functions:
            raise UnsupportedError(f"network {part.name}: its own operators cannot be joined")
        names = _names(model.graph, prefix, part.name)
        (read,) = inputs_of(model.graph)
        entries = edit.put("Gather", given, part.places, axis=1)
        edit.put("Reshape", entries, part.shape, output=names[read.name])
        edit.nodes += [renamed(node, names, prefix) for node in model.graph.node]
        for tensor in model.graph.initializer:
            graph.initializer.append(tensor)
            graph.initializer[-1].name = names[tensor.name]
        last = names[model.graph.output[0].name]
        ends.append(edit.put("Reshape", last, (1, part.outputs)))
    if passed:
        ends.append(edit.put("Gather", given, passed, axis=1))
    result = edit.put("Concat", *ends, axis=1)
    graph.node.extend(edit.nodes)
    width = sum(part.outputs for part in parts) + len(passed)
    for values, name, size in ((graph.input, given, inputs), (graph.output, result, width)):
        values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]))
    sets = _operator_sets(parts, models)
    version = min(max(model.ir_version for model in models), helper.VERSION_TABLE[-1][1])
    return helper.make_model(graph, opset_imports=sets, ir_version=version)


class JointRuntime(Program):
    """Runs each network's own file in onnxruntime, on its entries of the shared input."""

    def __init__(self, parts: Sequence[tuple[Program, Sequence[int]]], passed: Sequence[int]):
        self._parts = [(runtime, np.asarray(places)) for runtime, places in parts]
        self._passed = np.asarray(passed, dtype=np.int64)

    def run(self, x: Floats) -> Floats:
        results = [runtime.run(x[places]) for runtime, places in self._parts]
        return np.concatenate([*results, x[self._passed]])


def _names(graph: GraphProto, prefix: str, name: str) -> Mapping[str, str]:
    """New names for all tensors of a graph."""
    if graph.sparse_initializer:
        raise UnsupportedError(f"network {name}: sparse weights cannot be joined")
    tensors = {tensor.name for tensor in graph.initializer}
    tensors |= {value.name for value in (*graph.input, *graph.output)}
    tensors |= {t for node in graph.node for t in (*node.input, *node.output)}
    return {tensor: prefix + tensor if tensor else "" for tensor in tensors}


def _operator_sets(parts: Sequence[Part], models: Sequence[ModelProto]) -> list[OperatorSetIdProto]:
    """The operator sets of all models, which have to agree."""
    versions: dict[str, tuple[int, str]] = {}
    for part, model in zip(parts, models, strict=True):
        for entry in model.opset_import:
            domain = "" if entry.domain == "ai.onnx" else entry.domain
            version, first = versions.setdefault(domain, (entry.version, part.name))
            if version != entry.version:
                raise InputError(
                    f"networks {first} and {part.name} have operator sets {version} and "
                    f"{entry.version} of {domain or 'ONNX'}: export both with the same one"
                )
    return [helper.make_opsetid(domain, version) for domain, (version, _) in versions.items()]
