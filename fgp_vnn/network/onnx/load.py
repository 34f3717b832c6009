"""ONNX file in, `Network` in normal form out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from fgp_vnn.base.errors import (
    InputError,
    OutOfMemoryError,
    UnsupportedError,
    one_line,
    ran_out_of_memory,
)
from fgp_vnn.base.files import read_bytes
from fgp_vnn.network.model import Network
from fgp_vnn.network.onnx.affinity import check_affine
from fgp_vnn.network.onnx.clean import CLEANED, clean_graph, raise_opset
from fgp_vnn.network.onnx.compare import Reading, compare, exercise, sample
from fgp_vnn.network.onnx.graph import read_graph
from fgp_vnn.network.onnx.normal_form import normal_form
from fgp_vnn.network.onnx.rewrite import REWRITTEN, rewrite
from fgp_vnn.network.onnx.roundings import losses
from fgp_vnn.network.onnx.runtime import Floats, Runtime, open_inside
from fgp_vnn.strategy import Loading


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A network in normal form beside the program it came from."""

    network: Network  # float64, on the CPU
    runtime: Runtime
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    operators: Mapping[str, int]  # how often the file has each
    comparisons_only: bool  # a final softmax was dropped: only comparisons of outputs are kept

    def __repr__(self) -> str:
        return f"Loaded{self.network!r}"


def load_network(
    path: Path | str, *, dense_entries: int = 2_000_000, points: Floats | None = None
) -> LoadedNetwork:
    """Load an ONNX file, plain or gzipped; raises InputError and nothing else.

    Affine maps of up to `dense_entries` matrix entries become `Dense`, larger ones `Operator`. What
    they compute is compared with onnxruntime's results, also at the `points` [points, inputs], if
    they are inputs of this network.
    """
    path = Path(path)
    data = read_bytes(path, "network")
    try:
        return _load(data, dense_entries, points)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:  # what third-party code raises on files that nobody foresaw
        if ran_out_of_memory(error):
            raise OutOfMemoryError(error) from error
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UnsupportedError(f"{path}: the network cannot be loaded: {reason}") from error


def _load(data: bytes, dense_entries: int, points: Floats | None) -> LoadedNetwork:
    given = _parse(data)
    model = raise_opset(given)
    graph = read_graph(model)
    written = graph.output
    softmax = clean_graph(graph)
    rewrite(graph)
    check_affine(graph, rewritten=CLEANED | REWRITTEN)
    network, ends = normal_form(graph, dense_entries=dense_entries)
    runtime = Runtime(data, graph.input_shape)
    output_shape = graph.shapes.get(written, (network.outputs,))
    x = sample(network.inputs)
    if points is not None and points.shape[1] == network.inputs:
        x = np.concatenate([x, points])
    lost = losses(graph)
    reading = Reading(network, tuple(ends), tuple(lost[end] for end in ends), softmax)
    made = {name for node in given.graph.node for name in node.output}
    names = [name for name in dict.fromkeys(ends) if name in made]
    hidden = [k for k, name in enumerate(names) if name in ends[:-1]]
    inside = open_inside(given, data, names, graph.input_shape)
    x, values = exercise(inside, hidden, x, Loading())
    compare(reading, runtime, dict(zip(names, values, strict=True)), x)
    return LoadedNetwork(
        network,
        runtime,
        graph.input_shape,
        output_shape,
        Counter(node.op_type for node in given.graph.node),
        softmax is not None,
    )


def _parse(data: bytes) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's DecodeError, whose module differs between versions
        raise InputError("not an ONNX file, or a truncated one") from error
    if not model.graph.node and not model.graph.input:
        raise InputError("not an ONNX file: it holds no graph")
    return model
