"""Max pooling of affine forms, by max(a, b) = b + relu(a - b).

The members of each window are paired in rounds, as in a knockout tournament: the first half against
the second half, and with an odd number the middle one advances unpaired. A round is one ReLU layer
with a neuron for each pair (a, b), sorted by the numbers of a and b; a pair that several windows
share occurs once.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.call import Call
from fgp_vnn.certificate.checker.forms import Form, joined, linear, plus, taken
from fgp_vnn.certificate.checker.windows import pool_window

ABSENT = -1  # the number of a member outside of the image

Numbers = NDArray[np.int64]


def max_pool(call: Call) -> Form:
    """The maxima [batch, channels, *positions] of the windows of an image [batch, channels,
    *size]."""
    given = call.attributes
    if call.outputs > 1 or given.get("ceil_mode", 0):
        raise UnsupportedError("it also returns indices, or its windows go beyond the padding")
    return _pooled(call, list(given["kernel_shape"]))


def global_max_pool(call: Call) -> Form:
    """The maximum [batch, channels, 1, ...] of each channel of an image [batch, channels,
    *size]."""
    return _pooled(call, list(call.form().shape[2:]))


def _pooled(call: Call, kernel: list[int]) -> Form:
    form = call.form()
    window = pool_window(call.attributes, kernel, form.shape[2:])
    numbers = np.arange(prod(form.shape)).reshape(form.shape)
    seen = window.patches(numbers, kernel, ABSENT)
    shape = seen.shape[: len(form.shape)]
    groups: Numbers = seen.reshape(prod(shape), prod(kernel)).T  # [members, windows]
    if not (groups != ABSENT).any(0).all():
        raise UnsupportedError("a window outside of the image")
    current = linear(form, lambda block, _: block.reshape(len(block), -1))
    while len(groups) > 1:
        current, groups = _round(call, current, groups)
    return linear(taken(current, groups[0], 0), lambda b, _: b.reshape(len(b), *shape))


def _round(call: Call, values: Form, groups: Numbers) -> tuple[Form, Numbers]:
    """One round: the maxima of all pairs, and the windows' remaining members [members, windows] as
    indices into these maxima."""
    half = len(groups) // 2
    first, second = groups[:-half], groups[-half:]
    second = np.concatenate([second, first[half:]])  # the unpaired one is paired with itself
    first, second = np.where(first < 0, second, first), np.where(second < 0, first, second)
    both = np.stack([first.reshape(-1), second.reshape(-1)])
    pairs, number = np.unique(both[:, both[0] != ABSENT], axis=1, return_inverse=True)
    alone = pairs[0] == pairs[1]
    parts = [taken(values, pairs[0, alone], 0)]
    if not alone.all():
        a, b = (taken(values, side, 0) for side in pairs[:, ~alone])
        parts.insert(0, plus(b, call.relu(plus(a, b, -1.0))))
    place = np.argsort(np.argsort(alone, kind="stable"))  # the pairs first, then the unpaired
    result = np.full(both.shape[1], ABSENT)
    result[both[0] != ABSENT] = place[number.reshape(-1)]
    return joined(parts, 0), result.reshape(first.shape)
