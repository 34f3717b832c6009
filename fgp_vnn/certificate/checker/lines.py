"""The lines below and above the activations of a layer, given a leaf's assumptions and slopes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.curves import Planes, planes
from fgp_vnn.certificate.checker.forms import Array
from fgp_vnn.certificate.checker.network import RELU
from fgp_vnn.certificate.checker.rounding import SMALL, UNIT

Signs = NDArray[np.int8]


class Lines(NamedTuple):
    """One line below and one above each ReLU of a layer, [batch or 1, n] each."""

    low: Array  # slope of the line below, through the origin
    chord: Array  # slope of the line above
    intercept: Array  # of the line above


class Leaf(NamedTuple):
    """Assumptions and choices of a batch of leaves in one layer, each [batch, n]."""

    slopes: Array  # in [0, 1], of the line below; NaN for the default slope
    signs: Signs  # +1: z >= 0 is assumed, -1: z <= 0, 0: nothing
    multipliers: Array  # nonnegative Lagrange multipliers of these assumptions


def lines(lower: Array, upper: Array, leaf: Leaf | None = None) -> Lines:
    """Lines below and above relu(z) for lower <= z <= upper."""
    crossing = (lower < 0) & (upper > 0)
    on = np.where(lower >= 0, 1.0, 0.0)
    low = np.where(upper > -lower, 1.0, 0.0)
    if leaf is not None:
        crossing = crossing & (leaf.signs == 0)
        on = np.where(leaf.signs == 0, on, np.where(leaf.signs > 0, 1.0, 0.0))
        low = np.where(np.isnan(leaf.slopes), low, leaf.slopes)
    chord = np.clip(upper / np.where(crossing, upper - lower, 1.0), 0.0, 1.0)
    # For any slope c the line is above relu at both ends: c*l + m >= 0, c*u + m >= u, rounded up.
    intercept = np.maximum(-chord * lower, (1 - chord) * upper) * (1 + 8 * UNIT) + SMALL
    return Lines(
        np.where(crossing, low, on),
        np.where(crossing, chord, on),
        np.where(crossing, intercept, 0.0),
    )


def around(kind: str, lower: Array, upper: Array, leaf: Leaf | None = None) -> Lines | Planes:
    """Lines or planes below and above the values of a layer, with intervals cut by the leaf's
    assumptions."""
    if kind == RELU:
        return lines(lower, upper, leaf)
    if leaf is None:
        return planes(kind, lower, upper)
    lower = np.where(leaf.signs > 0, np.maximum(lower, 0), lower)
    upper = np.where(leaf.signs < 0, np.minimum(upper, 0), upper)
    return planes(kind, lower, upper, leaf.slopes)
