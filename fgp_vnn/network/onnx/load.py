"""ONNX file in, `Network` in normal form out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from fgp_vnn.base.errors import (
    InputError,
    OutOfMemoryError,
    UnsupportedError,
    one_line,
    ran_out_of_memory,
)
from fgp_vnn.base.model_file import external_tensors, parse_model, read_model
from fgp_vnn.network.model import Network
from fgp_vnn.network.onnx.affinity import AFFINE, check_affine
from fgp_vnn.network.onnx.choice import Choice, with_one_input_and_output
from fgp_vnn.network.onnx.clean import CLEANED, clean_graph, raise_opset
from fgp_vnn.network.onnx.conditions import CONDITIONAL, write_conditions
from fgp_vnn.network.onnx.fixed import bind_fixed
from fgp_vnn.network.onnx.graph import Graph, last_node
from fgp_vnn.network.onnx.normal_form import normal_form
from fgp_vnn.network.onnx.read import check_precision, read_graph
from fgp_vnn.network.onnx.rewrite import REWRITTEN, rewrite
from fgp_vnn.network.onnx.roundings import losses_of
from fgp_vnn.network.onnx.runtime import Floats, Program, Runtime, open_inside
from fgp_vnn.network.onnx.runtime_check import Reading, check_against_runtime, exercise, sample
from fgp_vnn.network.onnx.smooth import WRITTEN_OUT, write_out
from fgp_vnn.strategy import Loading

# The supported operators, as docs/howto/model.md lists them.
OPERATORS = frozenset({"Relu", *AFFINE}) | CLEANED | REWRITTEN | WRITTEN_OUT | CONDITIONAL

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A network in normal form beside the program it came from."""

    network: Network  # float64, on the CPU
    runtime: Program
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    operators: Mapping[str, int]  # how often each occurs in the file
    comparisons_only: bool  # a final softmax was dropped: only comparisons of outputs are valid
    threshold: float = 0.0  # a network with one output says yes above it
    note: str = ""  # how the network differs from the given model, if it does
    bound: Mapping[int, float] = field(default_factory=dict)  # inputs fixed at these constants
    source: Path | bytes | None = None  # the ONNX file, or its content

    def __repr__(self) -> str:
        return f"Loaded{self.network!r}"


def load_network(
    source: Path | str | bytes | onnx.ModelProto,
    *,
    dense_entries: int = 2_000_000,
    points: Floats | None = None,
    choice: Choice | None = None,
    fixed: Doubles | None = None,
    whole: bool = False,
    watch: Callable[[], None] = lambda: None,
) -> LoadedNetwork:
    """Load an ONNX model from a file, plain or gzipped, or from memory; raises InputError only.

    Affine maps of up to `dense_entries` matrix entries become `Dense`, larger ones `Operator`.
    Their results are compared with onnxruntime's at a few points, and at `points` [points, inputs]
    if these have the right number of inputs. `choice` selects inputs and outputs if there are
    several. With `fixed` values [inputs], NaN for an input that varies, operands that have to be
    constant may depend on fixed inputs. A final softmax is dropped unless `whole` is set. `watch`
    is called after each part of the work, and may raise.
    """
    if isinstance(source, str | Path):
        name, place, data = f"{source}: ", Path(source).absolute(), read_model(Path(source))
    else:
        name, place = "", None
        data = bytes(source) if isinstance(source, bytes) else source.SerializeToString()
    try:
        loaded = _load(data, dense_entries, points, choice or Choice(), fixed, whole, watch)
        if loaded.source is not None:
            return loaded
        return replace(loaded, source=place or data)
    except InputError as error:
        raise type(error)(f"{name}{error}") from error
    except Exception as error:  # a third-party error on an unforeseen file
        if ran_out_of_memory(error):
            raise OutOfMemoryError(error) from error
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UnsupportedError(f"{name}the network cannot be loaded: {reason}") from error


def _load(
    data: bytes,
    dense_entries: int,
    points: Floats | None,
    choice: Choice,
    fixed: Doubles | None,
    whole: bool,
    watch: Callable[[], None],
) -> LoadedNetwork:
    chosen, graph, given = _read(data, choice)
    watch()
    check_precision(graph)
    written = graph.output
    softmax = clean_graph(graph, whole=whole)
    bound = {} if fixed is None else bind_fixed(graph, fixed)
    write_conditions(graph)
    write_out(graph)
    rewrite(graph)
    _check_finite(graph)
    check_affine(graph)
    network, ends = normal_form(graph, dense_entries=dense_entries, watch=watch)
    output_shape = graph.shapes.get(written, (network.outputs,))
    x = sample(network.inputs)
    if points is not None and points.shape[1] == network.inputs:
        x = np.concatenate([x, points])
    lost = losses_of(graph)
    reading = Reading(network, tuple(ends), tuple(lost[end] for end in ends), softmax)
    names = [name for name in dict.fromkeys(ends) if name in given.made]
    hidden = [k for k, name in enumerate(names) if name in ends[:-1]]
    # The program of a large network takes much memory: this one is released before the next opens.
    how, inside = Loading(), [open_inside(chosen, given.outputs, names, graph.input_shape)]

    def run(x: Floats) -> list[Floats]:
        watch()
        return inside[0](_settled(x, bound))

    x, values = exercise(run, hidden, x, how)
    inside.clear()
    runtime = Runtime(chosen, graph.input_shape)
    seen = dict(zip(names, values, strict=True))
    check_against_runtime(reading, runtime, seen, _settled(x, bound), how, watch)
    return LoadedNetwork(
        network,
        runtime,
        graph.input_shape,
        output_shape,
        given.operators,
        softmax is not None,
        given.threshold,
        bound=bound,
        source=None if chosen is data else chosen,
    )


def _check_finite(graph: Graph) -> None:
    """Refuse infinite constants that are not the mask of a softmax."""
    for name, array in graph.constants.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"constant {name!r} has infinite values")


class _Given(NamedTuple):
    """Facts about a model that are kept after its weights are released."""

    made: frozenset[str]  # the tensors that its nodes compute
    outputs: tuple[str, ...]
    operators: Counter[str]
    threshold: float


def _read(data: bytes, choice: Choice) -> tuple[bytes, Graph, _Given]:
    """The bytes of the chosen model, its graph, and other facts about it."""
    whole = parse(data)
    model = with_one_input_and_output(whole, choice)
    if model is not whole:
        data = model.SerializeToString()
    given = _Given(
        frozenset(name for node in model.graph.node for name in node.output),
        tuple(output.name for output in model.graph.output),
        Counter(node.op_type for node in model.graph.node),
        _threshold(model),
    )
    return data, read_graph(raise_opset(model)), given


def _settled(x: Floats, bound: Mapping[int, float]) -> Floats:
    """The points x [points, inputs] with fixed inputs set to their values."""
    result: Floats = x.copy()
    result[:, list(bound)] = list(bound.values())
    return result


def _threshold(model: onnx.ModelProto) -> float:
    """The threshold between no and yes of a single output: 1/2 after a sigmoid, else 0."""
    last = last_node(model.graph.node, model.graph.output[0].name)
    return 0.5 if last is not None and last.op_type.endswith("Sigmoid") else 0.0


def parse(data: bytes) -> onnx.ModelProto:
    """Parse a model from bytes; refuses a model whose weights are in another file."""
    model: onnx.ModelProto = parse_model(data)
    if not model.graph.node and not model.graph.input:
        raise InputError("not an ONNX file: it holds no graph")
    for tensor in external_tensors(model):
        files = {entry.value for entry in tensor.external_data if entry.key == "location"}
        raise InputError(
            f"the weights of {tensor.name!r} are in the file {min(files, default='')!r}, which a "
            "model in memory does not bring along: give the path, or what onnx.load(path) returns"
        )
    return model
