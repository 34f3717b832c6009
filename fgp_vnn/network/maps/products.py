"""Dense products, by the faster of two libraries.

torch multiplies matrices by MKL, which leaves half of the speed of AVX-512 unused on processors
that are not Intel's; oneDNN, which comes with torch too, does not. Billions of multiplications and
additions per second, one thread of an EPYC (Zen 5), float32, matrices [m, k] and [k, n]:

    m, k, n            MKL    oneDNN
    4096, 256, 256      99       247
    256, 256, 256      107       218
    64, 256, 256       103       168
    32, 100, 100        76        42

Both add the same products in an order of their own, which the rounding errors allow for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear

# Multiplications from which oneDNN is used: it gains 0.2 ms by then, and compiles a program for
# each shape that is new, which takes 0.6 ms.
_LEAST = 1 << 24

Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def product(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """values [..., n] @ weight.T + bias, [..., m], for a weight [m, n]."""
    if values.dtype == torch.float32 and values.device.type == "cpu":
        many = values.numel() * weight.shape[0] >= _LEAST
        if many and not torch.is_grad_enabled() and (quick := _quick()) is not None:
            return quick(values, weight, bias)
    return linear(values, weight, bias)


@cache
def _quick() -> Product | None:
    """oneDNN's product, or None if this processor or this version of torch has no use for it: torch
    offers it to its compiler only, so it is tried before it is trusted."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    try:
        operator = torch.ops.mkldnn._linear_pointwise.default

        def quick(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            # It reads a bias with gaps as if it had none, so it gets the plainest tensors only.
            turned = weight.T.is_contiguous()
            weight = weight if turned else weight.contiguous()
            found: Tensor = operator(values.contiguous(), weight, None, "none", [], "")
            return found if bias is None else found.add_(bias)

        return quick if _right(quick) else None
    except (AttributeError, RuntimeError):
        return None


def _right(way: Product) -> bool:
    """Whether products of whole numbers, which float32 computes without rounding, are right."""
    whole = torch.arange(2 * 37 * 50, dtype=torch.float32, device="cpu")
    values = (whole % 17 - 8).reshape(2, 37, 50)
    weight = (whole[: 50 * 29] % 13 - 6).reshape(50, 29).T
    bias = whole[:29] - 14
    return all(
        torch.equal(way(values, weight, some), linear(values, weight, some))
        for some in (None, bias)
    )
