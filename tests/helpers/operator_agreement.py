"""Both readers of networks against onnxruntime, on networks of one operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.program import open_program
from fgp_vnn.certificate.checker.network import CheckedNetwork, read_network
from fgp_vnn.network import load_network
from tests.helpers.operator_choices import Drawn

Array = NDArray[np.float64]
AGREES, REFUSED = "agrees", "refuses"

# Where there are divisions: no result is rounded more often, or has terms of a larger sum.
_ROUNDINGS, _TERMS = 100, 200


def values(network: CheckedNetwork, x: Array) -> list[Array]:
    """What each map of the checker gives: z of every layer, then y."""
    active, result = [x], []
    for affine in network.maps:
        result.append(affine.bias + sum(w @ active[s] for s, w in affine.weights.items()))
        active.append(np.maximum(result[-1], 0))
    return result


def outcomes(drawn: Drawn) -> dict[str, str]:
    """For each reader AGREES, REFUSED if it names the operator, or else what is wrong.

    Nothing where onnxruntime refuses the network, or where it has no outputs.
    """
    expected = _expected(drawn)
    if expected is None:
        return {}
    return {name: _outcome(read, drawn, expected) for name, read in READERS.items()}


def _expected(drawn: Drawn) -> Array | None:
    try:
        program = open_program(drawn.content)
        given = program.get_inputs()[0]
        rows = [program.run(None, {given.name: x.reshape(given.shape)})[0] for x in drawn.points]
    except Exception:  # onnxruntime has no common base class for its errors
        return None
    result: Array = np.stack([row.reshape(-1) for row in rows]).astype(np.float64)
    return result if result.size else None


def _outcome(read: Callable[[Drawn], Any], drawn: Drawn, expected: Array) -> str:
    try:
        actual = read(drawn)
    except InputError as error:
        return REFUSED if f"operator {drawn.operator} " in str(error) else f"says {error}"
    if actual.shape != expected.shape:
        return f"gives {actual.shape[1]} outputs and not {expected.shape[1]}"
    off = float(np.abs(actual - expected).max())
    limit = 0.0 if drawn.exact else _ROUNDINGS * _TERMS * 2.0**-24
    return AGREES if off <= limit else f"is off by {off}"


def _loaded(drawn: Drawn) -> Array:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(drawn.content)
        result: Array = load_network(path).network(torch.from_numpy(drawn.points).double()).numpy()
    return result


def _checked(drawn: Drawn) -> Array:
    network = read_network(drawn.content)
    return np.stack([values(network, x.astype(np.float64))[-1] for x in drawn.points])


READERS: dict[str, Callable[[Drawn], Array]] = {"loader": _loaded, "checker": _checked}
