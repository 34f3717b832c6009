"""How far the float32 programs of an ONNX file can be from the network in real arithmetic.

`roundings` derives the bounds. A ReLU may also flush its result, which is then off by up to 2^-126;
this counts as an error of the next map's source. If a runtime folds constants into their
neighbours, terms are rounded no more often than `roundings` counts, as long as the folded constants
do not underflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto
from torch import Tensor

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.model_file import parse_model, read_model
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.onnx.clean import clean_graph, raise_opset
from fgp_vnn.network.onnx.graph import Graph, attributes, label
from fgp_vnn.network.onnx.normal_form import programs
from fgp_vnn.network.onnx.read import read_graph
from fgp_vnn.network.onnx.roundings import LARGEST, PRODUCTS, SUMS, Loss, deviations, losses_of

LEAST = 1e-30  # a factor above this does not underflow when it is multiplied by another

_EXACT = {
    "Concat", "Constant", "Dropout", "Flatten", "Gather", "Identity", "Pad", "Relu", "Reshape",
    "Slice", "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip
_KINDS = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}


@dataclass(frozen=True, eq=False)
class Deployment:
    """For each map of a network, a program that sums its terms' sizes, and its float32 losses."""

    terms: tuple[Operator, ...]  # `magnitude` sums the terms that the file's operators sum
    losses: tuple[Loss, ...]

    def error(self, index: int, sizes: Sequence[Tensor]) -> Tensor:
        """Upper bound on |fl(z) - z| [outputs] of map `index`, for sources of at most these sizes.

        Raises UnsupportedError if a sum may overflow, or is too long to bound its error.
        """
        loss, program = self.losses[index], self.terms[index]
        terms = program.magnitude(sizes).reshape(-1)
        if not (loss.bounded and bool((terms < LARGEST).all())):
            raise UnsupportedError("float32 may overflow, or a sum is too long to bound its error")
        gone = float(program.underflows(sizes).forward.max())
        return loss.error(terms, program.operations, gone)

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        return tuple(program.sources for program in self.terms)


def read_deployment(path: Path | str) -> Deployment:
    """The float32 errors of an ONNX file; refuses by name what the theorem does not cover."""
    model = raise_opset(parse_model(read_model(Path(path))))
    _check_written(model)
    graph = read_graph(model)
    if clean_graph(graph) is not None:
        raise UnsupportedError("float32 semantics do not cover a softmax, which can make ties")
    maps, ends = programs(graph)
    _check_factors(graph)
    lost = losses_of(graph)
    return Deployment(tuple(maps), tuple(lost[end] for end in ends))


def _check_factors(graph: Graph) -> None:
    """Refuse a normalisation whose factors may underflow when they are folded into others."""
    for node in graph.nodes:
        if node.op_type == "BatchNormalization":
            factor = abs(graph.constants[node.input[1]]) / deviations(graph, node)
            if not bool(((factor == 0) | (factor > LEAST)).all()):
                raise UnsupportedError(f"float32 semantics do not cover {label(node)}: underflow")


def _check_written(model: ModelProto) -> None:
    """Refuse operators and constants of the file that the theorem does not cover."""
    constant = {tensor.name for tensor in model.graph.initializer}
    given_as = [value.type.tensor_type.elem_type for value in model.graph.input]
    given_as += [tensor.data_type for tensor in model.graph.initializer]
    given_as += [a.t.data_type for n in model.graph.node for a in n.attribute if a.HasField("t")]
    if not _KINDS.issuperset(given_as):
        raise UnsupportedError("float32 semantics do not cover numbers that are not float32")
    for node in model.graph.node:
        if node.op_type not in _EXACT | SUMS | PRODUCTS:
            raise UnsupportedError(f"float32 semantics do not cover {label(node)}")
        given = attributes(node)
        if node.op_type == "Gemm" and (given.get("alpha", 1), given.get("beta", 1)) != (1, 1):
            raise UnsupportedError(f"float32 semantics do not cover {label(node)} with factors")
        if constant.issuperset(name for name in node.input if name):
            if node.op_type not in _EXACT:
                raise UnsupportedError(f"float32 semantics do not cover {label(node)} of constants")
            constant.update(node.output)
