"""ONNX file in, `Network` in normal form out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from torch import Tensor

from fgp_vnn.errors import InputError, UnsupportedError, one_line
from fgp_vnn.files import read_bytes
from fgp_vnn.network.affinity import check_affine
from fgp_vnn.network.clean import CLEANED, clean_graph, raise_opset
from fgp_vnn.network.graph import read_graph
from fgp_vnn.network.model import Network
from fgp_vnn.network.normal_form import normal_form
from fgp_vnn.network.rewrite import REWRITTEN, rewrite
from fgp_vnn.network.runtime import Runtime

_SAMPLES = 4
_TOLERANCE = 1e-4  # of float32 against float64, relative to the magnitudes inside the network


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A network in normal form beside the program it came from."""

    network: Network  # float64, on the CPU
    runtime: Runtime
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    operators: Mapping[str, int]  # how often the file has each
    comparisons_only: bool  # a final softmax was dropped: only comparisons of outputs are kept


def load_network(path: Path | str, *, dense_entries: int = 2_000_000) -> LoadedNetwork:
    """Load an ONNX file, plain or gzipped; raises InputError and nothing else.

    Affine maps of up to `dense_entries` matrix entries become `Dense`, larger ones `Operator`.
    """
    path = Path(path)
    data = read_bytes(path, "network")
    try:
        return _load(data, dense_entries)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:  # what third-party code raises on files that nobody foresaw
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UnsupportedError(f"{path}: the network cannot be loaded: {reason}") from error


def _load(data: bytes, dense_entries: int) -> LoadedNetwork:
    given = _parse(data)
    model = raise_opset(given)
    graph = read_graph(model)
    softmax = clean_graph(graph)
    rewrite(graph)
    check_affine(graph, rewritten=CLEANED | REWRITTEN)
    network = normal_form(graph, dense_entries=dense_entries)
    runtime = Runtime(data, graph.input_shape)
    output_shape = graph.shapes.get(graph.output, (network.outputs,))
    _compare(network, runtime, softmax)
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


def _compare(network: Network, runtime: Runtime, softmax: str | None) -> None:
    """Refuse a network whose normal form does not compute what onnxruntime does."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(_SAMPLES, network.inputs, generator=generator)
    x[1::2] = 2 * x[1::2] - 1  # the others are like images
    expected = torch.from_numpy(runtime.run_many(x.numpy())).double()
    if expected.shape[1] != network.outputs:
        raise UnsupportedError(
            f"onnxruntime gives {expected.shape[1]} outputs where {network.outputs} were expected"
        )
    values = network.preactivations(x.double())
    y = values[-1]
    scale = torch.stack([v.abs().amax(1) for v in values if v.shape[1]]).amax(0)  # [samples]
    error = (_after(y, softmax) - expected).abs().amax(1) / scale.clamp(min=1)
    if not bool((error <= _TOLERANCE).all()):
        raise UnsupportedError(
            "the network in normal form differs from what onnxruntime computes "
            f"(by {float(error.max()):.3g} of the largest value inside)"
        )


def _after(y: Tensor, softmax: str | None) -> Tensor:
    if softmax is None:
        return y
    return y.softmax(1) if softmax == "Softmax" else y.log_softmax(1)
