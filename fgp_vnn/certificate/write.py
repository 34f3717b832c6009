"""Writer of certificates; the top of `checker/proof.py` describes the format."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.proof import ARRAYS, FORMAT, VERSION, Certificate


def write_certificate(certificate: Certificate) -> bytes:
    """The content of a certificate's file."""
    arrays: dict[str, NDArray[Any]] = {}
    described = []
    for i, step in enumerate(certificate.steps):
        described.append({"kind": step.kind, "case": step.case, "layer": step.layer})
        for name, (dtype, _) in ARRAYS[step.kind].items():
            arrays[f"{i}.{name}"] = np.ascontiguousarray(step.arrays[name], dtype=dtype)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "result": "unsat",
        "network": certificate.network,
        "property": certificate.property,
        "steps": described,
    }
    text = np.frombuffer(json.dumps(header).encode("ascii"), dtype=np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, header=text, **arrays)  # type: ignore[arg-type]
    return file.getvalue()
