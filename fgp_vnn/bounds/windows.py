"""Joint bounds for networks with one hidden layer, in which groups of neurons share a few inputs.

All channels of a convolution at one place read the same window of the image. Linear relaxations
bound each neuron on its own. Their losses add up over thousands of windows, and splits make only
one window exact at a time. So the neurons of a window are bounded together. Let f_p be the
contribution of window p to a row, and l_p any vector over its inputs. Then

    sum_p f_p(x) + v.x  >=  sum_p min_x (f_p(x) - l_p.x)  +  min_x (v + sum_p l_p).x ,

and for each pattern s of the window's m neurons, where relu(z) = s z and (2 s - 1) z >= 0,

    f_p(x) - l_p.x  >=  sum_j (w_j s_j - beta_j (2 s_j - 1)) z_j(x) - l_p.x

with any beta >= 0: a linear function, whose minimum is at a corner of the window. The minimum over
all 2^m patterns holds for all x. Both l and beta are found by supergradient steps, and any are
sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.base.rounding import below, positive, unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.stepping import Moments
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense
from fgp_vnn.query import Query
from fgp_vnn.strategy import Windows

_COPIES = 8  # of the coefficients held at once while a bound is computed


@dataclass(frozen=True, eq=False)
class Grouped:
    """The neurons of a layer, grouped by the inputs that they read; padded with -1."""

    neurons: Tensor  # [groups, m]
    inputs: Tensor  # [groups, k]

    @classmethod
    def of(cls, weight: Tensor, numbers: Windows) -> Grouped | None:
        """The groups of a matrix [neurons, inputs]; None if a neuron reads too many inputs."""
        most = int(weight.count_nonzero(-1).amax()) if weight.numel() else 0
        if not 0 < most <= numbers.inputs:
            return None
        neuron, column = torch.nonzero(weight, as_tuple=True)
        inputs = column.new_full((len(weight), most), -1)
        inputs[neuron, _places(neuron)] = column
        window = torch.unique(inputs, dim=0, return_inverse=True)[1]
        order = window.argsort(stable=True)
        place = torch.empty_like(order)
        place[order] = _places(window[order])
        # A window with more neurons than a group may have becomes several groups.
        several = window * len(weight) + place // numbers.neurons
        group = torch.unique(several, return_inverse=True)[1]
        neurons = group.new_full((int(group.max()) + 1, numbers.neurons), -1)
        neurons[group, place % numbers.neurons] = torch.arange(len(weight), device=weight.device)
        return cls(neurons[:, (neurons >= 0).any(0)], inputs[neurons[:, 0]])


def _places(numbers: Tensor) -> Tensor:
    """The position of each entry among the entries of equal number, for sorted numbers
    [entries]."""
    sizes = torch.bincount(numbers)
    return torch.arange(len(numbers), device=numbers.device) - (sizes.cumsum(0) - sizes)[numbers]


class JointRow:
    """A row of a query whose network has one hidden layer of ReLUs, bounded window by window."""

    def __init__(
        self, query: Query, bounds: LayerBounds, grouped: Grouped, rounding: Rounding, row: int
    ) -> None:
        network, box = query.network, query.domain
        first, last = network.layers[0], network.output
        if not (isinstance(first, Dense) and isinstance(last, Dense) and isinstance(box, Box)):
            raise TypeError("windows are those of dense maps over a box")
        self._rounding, self._box, self._grouped = rounding, box, grouped
        self._at = grouped.inputs.clamp(min=0)
        there = (grouped.neurons >= 0).unsqueeze(-1)
        known = (grouped.inputs >= 0).unsqueeze(-2)
        members = grouped.neurons.clamp(min=0)
        window = first.weights[0][members.unsqueeze(-1), self._at.unsqueeze(-2)]
        self._weight = torch.where(there & known, window, 0.0)  # [groups, m, k]
        self._bias = torch.where(there.squeeze(-1), first.bias[members], 0.0)  # [groups, m]
        parts = dict(zip(last.sources, last.weights, strict=True))
        self._outer = torch.where(there.squeeze(-1), parts[1][row][members], 0.0)  # [groups, m]
        self._direct = parts[0][row] if 0 in parts else torch.zeros_like(box.center)  # [inputs]
        self._constant = last.bias[row]
        eye = torch.zeros(1, 1, last.outputs, dtype=network.dtype, device=network.device)
        eye[..., row] = 1.0
        self._of_output = self._rounding.of_map(1, eye).reshape(())
        m = grouped.neurons.shape[1]
        bits = torch.arange(2**m, device=network.device).unsqueeze(-1)
        self._on = ((bits >> torch.arange(m, device=network.device)) & 1).to(network.dtype)
        self._sign = 2 * self._on - 1  # [patterns, m]
        self._center, self._radius = box.center[self._at], box.radius[self._at]  # [groups, k]
        self.shared = self._first(bounds, members, known.squeeze(-2))  # l, [groups, k]
        self.beta = self._outer.new_zeros(len(members), 2**m, m)
        self._known = known.squeeze(-2).to(network.dtype)

    def _first(self, bounds: LayerBounds, members: Tensor, known: Tensor) -> Tensor:
        """The slopes [groups, k] of a plain linear bound below each window's sum."""
        lower, upper = (part[0][members] for part in (bounds.lower[0], bounds.upper[0]))
        chord = (upper / (upper - lower)).nan_to_num(0.0, 0.0, 0.0).clamp(0, 1)
        slope = torch.where(self._outer >= 0, (upper > -lower).to(chord.dtype), chord)
        return ((self._outer * slope).unsqueeze(-2) @ self._weight).squeeze(-2) * known

    def _lines(self) -> tuple[Tensor, Tensor]:
        """For each pattern, the coefficients of the inputs [groups, patterns, k] and the
        constants [groups, patterns]."""
        inner = self._outer.unsqueeze(-2) * self._on - self.beta * self._sign
        slopes = inner @ self._weight - self.shared.unsqueeze(-2)
        return slopes, (inner @ self._bias.unsqueeze(-1)).squeeze(-1)

    def _row(self, shared: Tensor, onto: Tensor) -> Tensor:
        """`onto` [inputs] plus the sum of all windows' vectors l_p."""
        return onto.index_add(0, self._at.flatten(), shared.flatten())

    def ascend(self, numbers: Windows, budget: Budget) -> bool:
        """Take supergradient steps; returns True once the bound is proved to be above 0, and False
        after the last step or the deadline."""
        moments = [Moments(part, numbers.means) for part in (self.shared, self.beta)]
        rates = [
            numbers.shared_rate * self.shared.abs().mean(),
            numbers.beta_rate * self._outer.abs().mean(),
        ]
        each = torch.arange(len(self.shared), device=self.shared.device)
        for _ in range(numbers.steps):
            if budget.expired():
                return False
            slopes, constant = self._lines()
            values = constant + (slopes @ self._center.unsqueeze(-1)).squeeze(-1)
            values = values - (slopes.abs() @ self._radius.unsqueeze(-1)).squeeze(-1)
            least, pattern = values.min(-1)
            row = self._row(self.shared, self._direct)
            whole = row @ self._box.center - row.abs() @ self._box.radius
            if float(least.sum() + whole + self._constant) > 0 and bool(positive(self.least())):
                return True
            corner = self._center - self._radius * slopes[each, pattern].sign()
            other = (self._box.center - self._box.radius * row.sign())[self._at]
            at_corner = (self._weight @ corner.unsqueeze(-1)).squeeze(-1) + self._bias
            rise = torch.zeros_like(self.beta)
            rise[each, pattern] = -self._sign[pattern] * at_corner
            steps = moments[0].direction((other - corner) * self._known), moments[1].direction(rise)
            self.shared = self.shared + rates[0] * steps[0]
            self.beta = (self.beta + rates[1] * steps[1]).clamp(min=0)
            rates = [numbers.decay * rate for rate in rates]
        return False

    def least(self) -> Tensor:
        """Lower bound of the row over the box, minus its rounding error.

        The coefficients of a pattern are those of a backward pass from neurons with these
        multipliers, and none of their sums is longer than that of a whole layer. The vectors l_p
        are subtracted there once more and summed over the windows in the remaining row; the errors
        of both are weighted by the sizes of the inputs.
        """
        numbers, rounding, box = unit(self.beta.dtype), self._rounding, self._box
        slopes, constant = self._lines()
        value = constant + (slopes @ self._center.unsqueeze(-1)).squeeze(-1)
        reach = (slopes.abs() @ self._radius.unsqueeze(-1)).squeeze(-1)
        members, at = self._grouped.neurons, self._at
        absent = members < 0

        def of_members(vectors: Tensor) -> Tensor:
            return vectors[0][members.clamp(min=0)].masked_fill(absent, 0.0).unsqueeze(-2)

        def of_window(vectors: Tensor) -> Tensor:
            return vectors[0][at].unsqueeze(-2)

        outer = self._outer.unsqueeze(-2).expand_as(self.beta)
        error = rounding.of_layer(1, outer, self.beta, of_members)
        error = error + 2 * rounding.of_input(slopes, reach, of_window)
        # A pattern whose sum overflows proves nothing, even if the others are finite.
        parts = below(value - reach - error).amin(-1)  # [groups]
        row = self._row(self.shared, self._direct)
        size = box.sizes + numbers.underflow
        sizes = self._row(self.shared.abs(), self._direct.abs())
        long = numbers.share(2 * self.shared.numel() + 2 * len(row) + 16)
        lines = row.reshape(1, 1, -1)
        far = (row.abs() @ box.radius).reshape(1, 1)
        off = rounding.of_input(lines, far).reshape(()) + self._of_output
        lost = numbers.underflow * (sizes.numel() + self.shared.numel())
        off = off + long * (sizes @ size) + lost
        whole = row @ box.center - far.reshape(()) - off
        summed = long * (parts.abs().sum() + whole.abs() + self._constant.abs())
        return below(parts.sum() + whole + self._constant - summed - numbers.underflow * len(parts))


def closed_by_windows(
    query: Query, bounds: LayerBounds, budget: Budget, numbers: Windows
) -> list[int]:
    """Indices of the disjuncts that joint bounds of neurons with the same inputs close."""
    network = query.network
    grouped = _grouped(query, numbers)
    if grouped is None:
        return []
    entries = grouped.inputs.numel() << grouped.neurons.shape[1]
    if _COPIES * entries * torch.finfo(network.dtype).bits // 8 > budget.at_once:
        return []
    rounding = Rounding(network, query.domain, bounds)

    def proved(row: int) -> bool:
        if budget.expired():
            return False
        return JointRow(query, bounds, grouped, rounding, row).ascend(numbers, budget)

    disjuncts = range(query.disjuncts)
    return [number for number in disjuncts if any(map(proved, query.rows_of(number)))]


def _grouped(query: Query, numbers: Windows) -> Grouped | None:
    """The groups of the only hidden layer; None if the network has another form or no group has
    more than one neuron."""
    network = query.network
    maps = network.maps
    if len(maps) != 2 or not network.piecewise_linear or not isinstance(query.domain, Box):
        return None
    first, last = maps
    if not (isinstance(first, Dense) and isinstance(last, Dense)):
        return None
    if first.sources != (0,) or sorted(last.sources) not in ([1], [0, 1]):
        return None
    grouped = Grouped.of(first.weights[0], numbers)
    return grouped if grouped is not None and grouped.neurons.shape[1] > 1 else None
