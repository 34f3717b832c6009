"""Check of loaded programs: their adjoints, which bounds rely on, against the programs themselves.

The comparison with onnxruntime runs maps forward only. The adjoint of a matrix is the same matrix,
but that of a program comes from rules and from torch, which both can be wrong.
"""

from __future__ import annotations

from math import prod

import torch

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.rounding import unit
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import Network

_ROWS = 2
_LARGE = 2.0**200  # of the values: hardly anything of the allowed error is that of the offsets


def check_adjoints(network: Network) -> None:
    """Refuse a network with a program A where <A v, r> = <v, A' r> fails for random v and r."""
    for number, affine in enumerate(network.maps, 1):
        if isinstance(affine, Operator) and not _fits(affine):
            raise UnsupportedError(
                f"map {number} of the network, which is too large for a matrix, is pulled back to "
                "another map than it is: this version of torch differentiates it wrongly"
            )


def _fits(affine: Operator) -> bool:
    random = torch.Generator().manual_seed(0)

    def drawn(size: int) -> torch.Tensor:
        found = torch.rand(_ROWS, size, generator=random, dtype=torch.float64)
        return (2 * found - 1).to(affine.bias)

    values = [_LARGE * drawn(prod(shape)) for shape in affine.shapes]
    rows = drawn(affine.outputs)
    forward = (affine.linear(values) * rows).sum(-1)
    pairs = zip(values, affine.adjoint(rows), strict=True)
    backward = torch.stack([(value * pulled).sum(-1) for value, pulled in pairs]).sum(0)
    terms = (affine.magnitude([value.abs() for value in values]) * rows.abs()).sum(-1)
    read = sum(value.shape[-1] for value in values)
    share = unit(rows.dtype).share(affine.operations + affine.outputs + read + 8)
    return bool(((forward - backward).abs() <= 2 * share * terms).all())
