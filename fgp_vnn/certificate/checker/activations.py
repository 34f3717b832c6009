"""Piecewise-linear operators on affine forms, built from ReLU layers, and products of two forms.

A certificate refers to these layers by number, so the order in which each rule creates its layers
matters.
"""

from __future__ import annotations

import numpy as np

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.call import Call
from fgp_vnn.certificate.checker.curves import PRODUCT
from fgp_vnn.certificate.checker.forms import (
    Constant,
    Form,
    as_form,
    joined,
    linear,
    plus,
    times,
    wide,
)

NO_BOUND = float(np.finfo(np.float32).max)  # the largest float32 as a bound means "no bound"


def leaky_relu(call: Call) -> Form:
    """z where z >= 0 and alpha * z elsewhere, of the shape of z."""
    return _sloped(call, np.asarray(call.attributes.get("alpha", np.float32(0.01))))


def prelu(call: Call) -> Form:
    """z where z >= 0 and slope * z elsewhere, of the shape of z; the slope is a constant that
    broadcasts to it."""
    slope = call.constant(1)
    if slope is None:
        raise UnsupportedError("its slope is missing")
    return _sloped(call, slope)


def _sloped(call: Call, slope: Constant) -> Form:
    """slope * z + (1 - slope) * relu(z)."""
    form, real = call.form(), np.asarray(slope, dtype=np.float64)
    if np.broadcast_shapes(form.shape, real.shape) != form.shape:
        raise UnsupportedError("the shape of its slopes does not fit its input")
    active = times(call.relu(form), 1 - real, np.multiply, 3)  # 1 - slope is rounded too
    return plus(times(form, real, np.multiply, 1), active)


def absolute(call: Call) -> Form:
    """2 * relu(z) - z."""
    form = call.form()
    return plus(times(call.relu(form), np.asarray(2.0), np.multiply, 1), form, -1.0)


def products(call: Call, left: Form, right: Form) -> Form:
    """The elementwise product, as one layer that reads all left factors, then all right factors,
    broadcast as in numpy."""
    shape = np.broadcast_shapes(left.shape, right.shape)
    count = int(np.prod(shape))

    def flat(form: Form) -> Form:
        return linear(
            form,
            lambda block, _: np.broadcast_to(wide(block, shape), (len(block), *shape)).reshape(
                len(block), count
            ),
        )

    return call.layer(joined([flat(left), flat(right)], 0), PRODUCT, shape)


def clipped(call: Call) -> Form:
    """low + relu(z - low) - relu(z - high), without the terms of an absent bound."""
    low, high = call.number("min", 1, -np.inf), call.number("max", 2, np.inf)
    if not low <= high:
        raise UnsupportedError("its lower bound is above its upper bound")
    form = result = call.form()
    if low > -NO_BOUND:
        result = plus(_above(call, form, low), as_form(np.asarray(low)))
    if high < NO_BOUND:
        result = plus(result, _above(call, form, high), -1.0)
    return result


def _above(call: Call, form: Form, level: float) -> Form:
    shifted = form if level == 0 else plus(form, as_form(np.asarray(level)), -1.0)
    return call.relu(shifted)
