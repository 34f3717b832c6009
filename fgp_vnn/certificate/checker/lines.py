"""The lines around the activations of a layer, under what a part of a proof assumes and chooses."""

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
    """The lines around the ReLUs of one layer, each [batch or 1, n]."""

    low: Array  # slope of the line below, through the origin
    chord: Array  # slope of the line above
    intercept: Array  # of the line above


class Leaf(NamedTuple):
    """What a batch of bounds assumes and chooses in one layer, each [batch, n]."""

    slopes: Array  # in [0, 1], of the line below; nan for the usual one
    signs: Signs  # +1: z >= 0 is assumed, -1: z <= 0, 0: nothing
    multipliers: Array  # at least 0, of these assumptions


def lines(lower: Array, upper: Array, leaf: Leaf | None = None) -> Lines:
    """Lines around relu(z) for lower <= z <= upper."""
    crossing = (lower < 0) & (upper > 0)
    on = np.where(lower >= 0, 1.0, 0.0)
    low = np.where(upper > -lower, 1.0, 0.0)
    if leaf is not None:
        crossing = crossing & (leaf.signs == 0)
        on = np.where(leaf.signs == 0, on, np.where(leaf.signs > 0, 1.0, 0.0))
        low = np.where(np.isnan(leaf.slopes), low, leaf.slopes)
    chord = np.clip(upper / np.where(crossing, upper - lower, 1.0), 0.0, 1.0)
    # Above relu at both ends, whatever the slope: c*l + m >= 0 and c*u + m >= u, rounded up.
    intercept = np.maximum(-chord * lower, (1 - chord) * upper) * (1 + 8 * UNIT) + SMALL
    return Lines(
        np.where(crossing, low, on),
        np.where(crossing, chord, on),
        np.where(crossing, intercept, 0.0),
    )


def around(kind: str, lower: Array, upper: Array, leaf: Leaf | None = None) -> Lines | Planes:
    """What lies around the values of a layer, where an assumption cuts off one side."""
    if kind == RELU:
        return lines(lower, upper, leaf)
    if leaf is None:
        return planes(kind, lower, upper)
    lower = np.where(leaf.signs > 0, np.maximum(lower, 0), lower)
    upper = np.where(leaf.signs < 0, np.minimum(upper, 0), upper)
    return planes(kind, lower, upper, leaf.slopes)
