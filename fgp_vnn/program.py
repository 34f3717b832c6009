"""A network as onnxruntime runs it."""

from __future__ import annotations

from typing import Any


def open_program(data: bytes, *, as_written: bool = False) -> Any:
    """A model on the CPU, with one thread and no messages of its own; raises what onnxruntime does.

    Without its fallback, which tries the CPU a second time and prints that where verdicts go.
    onnxruntime merges operators, unless they are to be run as they are written.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if as_written:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(data, options, providers=providers, enable_fallback=0)
