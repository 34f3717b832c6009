"""Affine forms of a chain's neurons, layer by layer, with bounds on their rounding errors.

Rounding. Let e_k be the error of the computed forms over the domain, for neurons that are on; an
unstable neuron is a column of its own and has no error. Then e_k <= |W| e_(k-1) + local_k, which
grows with the product of the |W|. The bound in the 2-norm, |e_k| <= |W|_2 |e_(k-1)| + |local_k|
with W restricted to the neurons that are on, grows far less; the smaller of the two is used. The
underflow error of an entry of a form is multiplied by the size of its column.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import cached_parts, parts
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import Dense
from fgp_vnn.regions.triangular import farthest
from fgp_vnn.strategy import Shrinking

_COPIES = 8  # copies of a neuron's form in memory while it is bounded


class _Group(NamedTuple):
    """The unstable neurons of one layer; their columns start at `begin`."""

    begin: int
    neurons: Tensor  # [n] their indices among all neurons
    forms: BoundedForms
    lower: Tensor  # [n]
    upper: Tensor  # [n]
    slope: Tensor  # [n] slope of the lower line
    chord: Tensor  # [n] slope of the upper line
    cut: Tensor  # [n] value of the upper line at 0
    terms: Tensor  # [n] sum of the magnitudes of the terms of a form and of its lines


class BoundedForms(NamedTuple):
    """Affine forms: coefficients of t, of 1 and of the unstable neurons so far."""

    rows: Tensor  # [n, columns]
    error: Tensor  # [n] upper bound on the rounding error of a form over the domain
    size: Tensor  # [n] upper bound on the sum of the magnitudes of its terms

    def at(self, index: Tensor) -> BoundedForms:
        """The forms of some neurons [m]; column-major rows are gathered in column order."""
        by_columns = self.rows.stride(0) == 1
        rows = self.rows.T[:, index].T.contiguous() if by_columns else self.rows[index]
        return BoundedForms(rows, self.error[index], self.size[index])


class _Passed(NamedTuple):
    """The active neurons of a layer: those that are stably on, then the unstable ones."""

    active: Tensor  # [active] indices in the layer
    forms: BoundedForms  # of the active neurons
    on: int  # how many of them are stably on
    norm: Tensor | None  # [] bound on the 2-norm of the errors of those on, in deep networks


class ChainForms:
    """The columns and the groups of unstable neurons found so far."""

    def __init__(
        self, domain: Domain, dtype: torch.dtype, budget: Budget, how: Shrinking, *, deep: bool
    ) -> None:
        self.domain, self.budget, self.how, self.deep = domain, budget, how, deep
        self.inputs = len(domain.center)
        self.unit = unit(dtype)
        far = farthest(domain)
        self.sizes = torch.cat([far, far.new_ones(1)])  # [columns] of t, 1, unstable neurons
        self.groups: list[_Group] = []
        self.seen = 0  # neurons of the layers so far
        self.passed: _Passed | None = None

    def first(self, affine: Dense) -> BoundedForms:
        """The forms of the first map."""
        weight, center = affine.weights[0], self.domain.center
        rows = torch.cat([weight, (weight @ center + affine.bias).unsqueeze(1)], 1)
        sizes = self.sizes[:-1] + center.abs()
        return self._with_error(affine, rows, affine.magnitude([sizes]), sizes, 0)

    def next(self, affine: Dense, passed: _Passed) -> BoundedForms | None:
        """The forms of a map, from those of the active neurons before it; None if time is up."""
        active, before, on, norm = passed
        weight = affine.weights[0][:, active]
        rows = self._product(weight, before.rows)
        if rows is None:
            return None
        rows[:, self.inputs] += affine.bias
        if affine.terms is None:
            size = weight.abs() @ before.size + affine.bias.abs()
        else:
            size = affine.terms[0][:, active] @ before.size + affine.terms[1]
        faulty = weight[:, :on]
        carried = faulty.abs() @ before.error[:on]
        if norm is not None:
            by_norm = self._length(faulty) * norm
            carried = torch.minimum(carried, by_norm)
        return self._with_error(affine, rows, size, before.size, carried)

    def _product(self, weight: Tensor, rows: Tensor) -> Tensor | None:
        """weight @ rows, some columns at a time; None if time is up."""
        some = max(1, self.how.products // max(1, weight.numel()))
        found = weight.new_empty(len(weight), rows.shape[1])
        for columns in parts(rows.shape[1], some):
            if self.budget.expired():
                return None
            found[:, columns] = weight @ rows[:, columns]
        return found

    def _with_error(
        self, affine: Dense, rows: Tensor, size: Tensor, read: Tensor, carried: Tensor | int
    ) -> BoundedForms:
        """Forms with their error, for sources of at most `read` and errors `carried` over."""
        whole = carried if affine.defect is None else carried + affine.defect
        error = self.unit.grow(affine.operations + 8) * whole + self._local(affine, size, read)
        return BoundedForms(rows, error, size)

    def _local(self, affine: Dense, size: Tensor, read: Tensor) -> Tensor:
        """Bound on the error of the forms from a map's own roundings, without its defect."""
        small = (affine.underflows([read]).forward + 4) * (1 + self.sizes.sum())
        return self.unit.share(affine.operations + 8) * size + self.unit.underflow * small

    def _length(self, rows: Tensor) -> Tensor:
        """Upper bound on the 2-norm of each row [..., n]."""
        count = rows.shape[-1]
        length: Tensor = torch.linalg.vector_norm(rows, dim=-1) + self.unit.root(count)
        return self.unit.grow(count + 4) * length

    def layer(self, forms: BoundedForms, affine: Dense) -> _Passed:
        """Bound a layer and sort its neurons: on, off, or a group of unstable ones."""
        lower, upper = self.bound(forms)
        on, crossing, slack = self.sort(lower, upper)
        forms = forms._replace(error=self.unit.grow(2) * (forms.error + slack))
        active = torch.cat([on, crossing])
        norm = self._norm(forms, affine, on, slack[on]) if self.deep else None
        columns, count = forms.rows.shape[1], len(crossing)
        rows = forms.rows.new_zeros(len(active), columns + count)
        rows[: len(on), :columns] = forms.rows[on]
        size = self.terms(rows[: len(on), :columns]) + forms.error[on]
        if count:
            rows[len(on) :, columns:].fill_diagonal_(1)
            self.add_group(forms.at(crossing), crossing, lower, upper)
            size = torch.cat([size, upper[crossing]])
        kept = BoundedForms(rows, forms.error[active], size)
        self.seen += len(lower)
        self.passed = _Passed(active, kept, len(on), norm)
        return self.passed

    def bound(self, forms: BoundedForms) -> tuple[Tensor, Tensor]:
        """Bounds [n] by intervals, then by back substitution for neurons still unstable."""
        lower, upper = self._interval(forms)
        crossing = torch.nonzero((lower < 0) & (upper > 0)).flatten()
        if len(crossing) and self.groups:
            fit = min(self.budget.at_once, self.how.chunk) // (8 * _COPIES * forms.rows.shape[1])
            for some in parts(len(crossing), fit):
                if self.budget.expired():
                    break
                at = crossing[some]
                lower[at], upper[at] = self._bound(forms.at(at), lower[at], upper[at])
        return lower, upper

    def sort(self, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The neurons that are on, the unstable ones, and a bound [n] on |relu(z) - z| if on."""
        # The bounds of a neuron without weights differ only by underflow: relu(z) is nearly z.
        zero = (lower < 0) & (lower >= -self.unit.negligible) & (upper > 0)
        on = torch.nonzero((lower >= 0) | zero).flatten()
        crossing = torch.nonzero((lower < 0) & (upper > 0) & ~zero).flatten()
        return on, crossing, torch.where(zero, -lower, 0.0)

    def add_group(
        self, forms: BoundedForms, crossing: Tensor, lower: Tensor, upper: Tensor
    ) -> None:
        """Add the unstable neurons `crossing` [m] of a layer with bounds [n] as columns; `forms`
        [m] are theirs."""
        lower, upper = lower[crossing], upper[crossing]
        (lines,) = LayerBounds((lower.unsqueeze(0),), (upper.unsqueeze(0),)).lines()
        places, begin = self.seen + crossing, len(self.sizes)
        slope, chord, cut = (line.flatten() for line in lines[:3])
        terms = self.terms(forms.rows) + 2 * (upper - lower)
        group = _Group(begin, places, forms, lower, upper, slope, chord, cut, terms)
        self.groups.append(group)
        self.sizes = torch.cat([self.sizes, upper])

    def _norm(self, forms: BoundedForms, affine: Dense, on: Tensor, slack: Tensor) -> Tensor:
        """Upper bound on the 2-norm of the errors of the neurons that are on, slack included."""
        own = self._length(forms.error[on])
        before = self.passed
        long = affine.weights[0].numel() * affine.outputs > self.how.products
        if before is None or before.norm is None or long:
            return own
        local = self._local(affine, forms.size, before.forms.size)[on] + slack
        if affine.defect is not None:
            local = local + affine.defect[on]
        weight = affine.weights[0][on][:, before.active[: before.on]]
        through = self._length(local) + _norm_bound(weight) * before.norm
        return torch.minimum(own, self.unit.grow(4) * through)

    def _interval(self, forms: BoundedForms) -> tuple[Tensor, Tensor]:
        """Interval bounds, with each unstable neuron between 0 and its upper bound."""
        n = self.inputs
        middle = forms.rows[:, n]
        reach = self.domain.reach(forms.rows[:, :n])
        columns = forms.rows.shape[1]
        terms = self.terms(forms.rows[:, : n + 1])
        total = torch.zeros_like(terms)
        if self.groups:
            total, size = self._weighed(forms.rows[:, n + 1 :], self.sizes[n + 1 :])
            terms, reach = terms + size, reach + size / 2
        slack = self.unit.share(2 * columns + 18) * terms
        slack = slack + self.unit.grow(8) * forms.error + self.unit.underflow * (4 * columns + 8)
        middle, reach = middle + total / 2, reach + slack
        return below(middle - reach), above(middle + reach)

    def terms(self, rows: Tensor) -> Tensor:
        """Upper bound [n] on the sum of the magnitudes of the terms of rows [n, columns]."""
        return self._weighed(rows, self.sizes[: rows.shape[1]])[1]

    def _weighed(self, rows: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """rows @ sizes and |rows| @ sizes, [n] each, for rows [n, columns] and sizes [columns];
        column-major rows are multiplied in parts that fit the CPU cache."""
        if rows.stride(0) != 1:
            return rows @ sizes, rows.abs() @ sizes
        both = rows.new_zeros(2, len(rows))
        for some in cached_parts(rows.shape[1], len(rows), self.how.pushed, rows.device):
            part = rows.T[some]
            both[0] += sizes[some] @ part
            both[1] += sizes[some] @ part.abs()
        return both[0], both[1]

    def _bound(self, forms: BoundedForms, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """Interval bounds tightened by back substitution."""
        both = BoundedForms(*(torch.cat([part, part]) for part in forms))
        both.rows[len(lower) :].neg_()
        low, high = self.least(both).chunk(2)
        return torch.maximum(lower, low), torch.minimum(upper, -high)

    def least(self, forms: BoundedForms) -> Tensor:
        """Lower bounds of forms: unstable neurons are replaced by lines, the last layer first."""
        n, rows = self.inputs, forms.rows.clone()
        terms, error = self.terms(rows), forms.error
        most, columns = rows.shape[1], 1 + self.sizes.sum()
        for group in reversed(self.groups):
            count = len(group.lower)
            coefficient = rows[:, group.begin : group.begin + count]
            size = coefficient.abs()
            slope = torch.where(coefficient > 0, group.slope, group.chord)
            rows[:, n] += coefficient.clamp(max=0) @ group.cut
            rows[:, : group.begin] += (coefficient * slope) @ group.forms.rows
            error = error + size @ group.forms.error
            small = (2 * count + 8 + size.sum(-1)) * columns
            error = error + self.unit.underflow * (small + size @ (4 + group.upper))
            terms = terms + size @ group.terms
        # The terms ever added to a row sum to at most `terms` in magnitude. Each group rounds them
        # in a product with its slope, two sums over the group and two more; the support follows.
        steps = 2 * (most + 8) * (len(self.groups) + 2)
        error = self.unit.grow(steps) * error + self.unit.share(steps) * terms
        reach = self.domain.support(-rows[:, :n])
        return below(rows[:, n] - reach - (error + self.unit.underflow * (4 * most + 8)))

    def dense(self, forms: BoundedForms) -> Dense:
        """The forms as a map of the condensed network, which reads x and the groups before it."""
        n, center = self.inputs, self.domain.center
        rows = forms.rows
        groups = [g for g in self.groups if g.begin < rows.shape[1]]
        weights = [rows[:, :n].contiguous()]
        weights += [rows[:, g.begin : g.begin + len(g.lower)].contiguous() for g in groups]
        shift = weights[0] @ center
        total = weights[0].abs() @ center.abs() + rows[:, n].abs()
        extra = self.unit.share(n + 4) * total
        extra = extra + self.unit.underflow * (2 * n + 4 + weights[0].abs().sum(-1))
        sources = tuple(range(len(groups) + 1))
        error = self.unit.grow(2) * (forms.error + extra)
        return Dense(sources, tuple(weights), rows[:, n] - shift, error)


def _norm_bound(weight: Tensor) -> Tensor:
    """Upper bound on |W|_2, the root of |M|_2 for M = W^T W; |M|_2 <= trace(M^8)^(1/8).

    The error of M is at most as many roundings as W has rows, each of trace(M), the square of W's
    Frobenius norm. With M scaled to a Frobenius norm of 1, the error of its powers is at most 3
    roundings per row of M, plus 8 for the scaling. A root is off by less than 8 ulps.
    """
    square = weight.T @ weight if weight.shape[0] > weight.shape[1] else weight @ weight.T
    size_of, rows, long = unit(weight.dtype), len(square), max(weight.shape)
    scale = torch.linalg.vector_norm(square).clamp(min=size_of.root(1))
    power = square / scale
    for _ in range(2):
        power = power @ power
    length = torch.linalg.vector_norm(power) + size_of.share(4 * rows + 32)
    trace = size_of.share(long + rows + 8) * square.diagonal().sum()
    power_bound: Tensor = scale * length**0.25 + trace
    bound = size_of.grow(long + 32) * power_bound + size_of.root(long * rows)
    return size_of.grow(8) * bound.sqrt()
