"""The checker's bounds on the unsafe set of a case: sums of rows, weighted by the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.bounds import Enclosure, proved
from fgp_vnn.certificate.checker.forms import Array
from fgp_vnn.certificate.checker.lines import Leaf
from fgp_vnn.certificate.checker.proof import ProofStep
from fgp_vnn.certificate.checker.rounding import SMALL, gamma
from fgp_vnn.property.model import Case

Numbers = NDArray[np.int64]
Weights = NDArray[np.float32]


class Unsafe:
    """The rows of all disjuncts of a case, concatenated."""

    def __init__(self, case: Case) -> None:
        self.count = len(case.unsafe)
        self.rows = np.concatenate([part.rows for part in case.unsafe])  # [rows, outputs]
        self.limits = np.concatenate([part.limits for part in case.unsafe])
        self.owner = np.repeat(np.arange(self.count), [len(p.limits) for p in case.unsafe])

    def disjuncts(self, step: ProofStep) -> Numbers:
        """The disjuncts of a step; raises InputError if one is unknown or named twice."""
        numbers: Numbers = step.arrays["disjuncts"].astype(np.int64)
        if not len(numbers) or not ((numbers >= 0) & (numbers < self.count)).all():
            raise InputError("it is about a disjunct that the property does not have")
        if len(np.unique(numbers)) < len(numbers):
            raise InputError("it names a disjunct twice")
        return numbers

    def weights(self, step: ProofStep, leaves: int) -> Weights:
        """The weights [leaves, rows] of a step; raises InputError if they are not valid."""
        weights: Weights = step.arrays["weights"]
        if weights.shape != (leaves, len(self.limits)):
            raise InputError("the number of weights does not fit the leaves and rows")
        return at_least_zero(weights, "weight")

    def mixed(self, weights: NDArray[Any], disjuncts: Numbers) -> Array:
        """The weights of each sum [batch, sums, rows]: `weights` [batch, rows] for the rows of the
        sum's own disjunct, given by `disjuncts` [batch or 1, sums], and 0 for all other rows."""
        mine = self.owner == disjuncts[..., None]
        return np.where(mine, weights[:, None].astype(np.float64), 0.0)

    def least(
        self, enclosure: Enclosure, weights: Array, chosen: Sequence[Leaf] | None = None
    ) -> Array:
        """Lower bounds [batch, sums] of sums of rows with weights [batch, sums, rows]."""
        with np.errstate(all="ignore"):
            rows = weights @ self.rows
            least = enclosure.least(len(enclosure.network.widths), rows, chosen)
            # The sums of rows are rounded too; the size of the outputs bounds the effect.
            size = enclosure.output_size @ np.abs(self.rows).T + np.abs(self.limits) + SMALL
            error = gamma(2 * len(self.limits) + 16) * (weights @ size[..., None])[..., 0]
            return proved(least - weights @ self.limits - 1.01 * error)


def at_least_zero(values: Weights, what: str) -> Weights:
    """The values [...], unchanged; raises InputError if one is negative or not finite. The message
    calls it `what`."""
    if not ((values >= 0) & (values < np.inf)).all():
        raise InputError(f"a {what} is negative or not finite")
    return values
