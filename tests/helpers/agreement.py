"""A loaded network against onnxruntime, which runs its file."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fgp_vnn.network import LoadedNetwork


def assert_agrees(loaded: LoadedNetwork, x: Any = None, *, within: float = 1e-5) -> None:
    """Both give the same outputs at x [points, inputs], by default at 20 points around 0."""
    if x is None:
        x = np.random.default_rng(0).normal(size=(20, loaded.network.inputs))
    x = np.asarray(x, dtype=np.float32)
    ours = loaded.network(torch.from_numpy(x).double()).numpy()
    theirs = np.stack([loaded.runtime.run(row) for row in x])
    np.testing.assert_allclose(ours, theirs, rtol=within, atol=within)
