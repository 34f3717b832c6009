"""A network as onnxruntime runs it."""

from __future__ import annotations

from typing import Any


def open_program(data: bytes) -> Any:
    """A model on the CPU, with one thread and no messages of its own; raises what onnxruntime does.

    Without its fallback, which tries the CPU a second time and prints that where verdicts go.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(data, options, providers=providers, enable_fallback=0)
