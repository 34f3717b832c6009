"""The network as deployed: one network that covers all of its float32 evaluations.

At an input x, a float32 program computes z_k = F_k(x, a_1, ..., a_{k-1}) + e_k(x), where the a_j
are the values it computed itself, and a_k = relu(z_k). The ReLU is exact, except that its result
may be flushed to zero, which counts as an error of the maps that read it. `Deployment` bounds |e_k|
for sources within the bounds of the earlier layers, and these bounds hold for all such programs, by
induction over the layers. So a network whose maps have the defects |e_k| covers all of them: what
is proved of it for each x is proved of each program.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.network.onnx.deployed import Deployment


def deployed(network: Network, box: Box, deployment: Deployment, *, budget: Budget) -> Network:
    """The network with bounds on the float32 errors over the box as defects of its maps."""
    if not network.piecewise_linear:
        raise UnsupportedError("float32 semantics cover no activation but ReLU")
    if tuple(affine.sources for affine in network.maps) != deployment.sources:
        raise ValueError("the deployment is that of another network")
    sizes = [box.sizes]
    bounds = LayerBounds((), ())
    maps: list[AffineMap] = []
    for k, affine in enumerate(network.maps):
        error = deployment.error(k, [sizes[source].reshape(-1) for source in affine.sources])
        maps.append(_with_defect(affine, error))
        if k < len(network.layers):
            first = Network(tuple(maps), maps[-1], network.inputs)
            bounds = root_bounds(first, box, known=bounds, budget=budget)
            sizes.append(bounds.sizes()[-1])
    return Network(tuple(maps[:-1]), maps[-1], network.inputs)


def received(box: Box) -> Box:
    """A box of all inputs that a program may receive: the points of `box` and their float32
    roundings; a fixed input is received as its rounding only.

    Rounding is monotone, so a point between two bounds rounds to a value between their roundings.
    """
    low, high = (side.float().to(side.dtype) for side in (box.lower, box.upper))
    fixed = box.lower == box.upper
    lower = torch.where(fixed, low, torch.minimum(box.lower, low))
    return Box(lower, torch.where(fixed, high, torch.maximum(box.upper, high)))


def _with_defect(affine: AffineMap, error: Tensor) -> AffineMap:
    if not isinstance(affine, Dense | Operator):
        raise TypeError(f"no defect for {type(affine).__name__}")
    before = 0 if affine.defect is None else affine.defect
    return replace(affine, defect=error + before)
