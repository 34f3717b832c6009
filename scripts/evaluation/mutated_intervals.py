"""Mutations of bundles over intervals, of ReLU networks that replace smooth ones, and of functions
removed from the end of a network."""

from __future__ import annotations

from mutation import Change, tested

_BOUNDED = "search/test_intervals::a_bundle_is_never_bounded_above_a_row"
_CONSTRAINTS = tested("bounds/constraints.py", _BOUNDED)
_SHIFT = tested(
    "bounds/constraints.py",
    "bounds/test_constraints::what_multipliers_add_to_a_constant_is_below_the_exact_sum",
)
_LAYERS = tested("bounds/layers.py", _BOUNDED)
_HALVES = tested("search/bundles.py", "search/test_intervals::the_halves_of_a_bundle_cover_it")
_STRIPS = tested("bounds/strips.py", "bounds/test_strips::values_lie_in_their_strip")
_STANDS = tested(
    "transform/stable.py",
    "bounds/test_strips::the_network_that_stands_for_a_smooth_one_has_its_values_up_to_its_errors",
)
_END = tested("transform/increasing.py", "transform/test_increasing")

INTERVALS: tuple[Change, ...] = (
    ("an upper end as a lower one", _CONSTRAINTS, "⟦- → ⟧cut[:, 1].to(dtype)"),
    (
        "ends that multipliers forget",
        _CONSTRAINTS,
        "(⟦self.sign * beta * self.point → beta * self.point.abs()⟧).sum(-1)",
    ),
    ("what an end adds without its rounding", _SHIFT, "return found ⟦- → + 0 *⟧ size_of.share("),
    ("ends of the wrong side", _LAYERS, "torch.minimum(upper[k], ⟦up → low⟧)"),
    (
        "lines for the lower end only",
        _LAYERS,
        "activation.envelope(lower[at].unsqueeze(0), ⟦upper → lower⟧[at].unsqueeze(0))",
    ),
    (
        "a gap between two halves",
        _HALVES,
        "torch.stack([lower.scatter(-1, index, point⟦ →  + 0.1⟧), upper], -2)",
    ),
    ("half of a strip", _STRIPS, "(ceilings - floors) / ⟦2 → 4⟧ + room"),
    (
        "a line that is turned around its worse end",
        _STRIPS,
        "ends = torch.⟦minimum → maximum⟧(sign",
    ),
    (
        "strips without bounds are narrow",
        _STRIPS,
        "⟦torch.where(halves.isfinite(), halves, torch.inf) → halves.nan_to_num(torch.inf)⟧",
    ),
    (
        "smooth neurons without an error",
        _STANDS,
        "defect = defect + ⟦ → 0 * ⟧_lost(size, own, target)",
    ),
    (
        "strips through the origin",
        _STANDS,
        "constant = constant + ⟦ → 0 * ⟧coefficient @ own.centre",
    ),
    ("a place that is not proved", _END, "* directions[number] >= ⟦0 → -1⟧"),
    (
        "a place proved from the wrong side",
        _END,
        "⟦least if directions[number] > 0 else greatest → greatest if "
        "directions[number] > 0 else least⟧",
    ),
    ("outputs that differ by a constant are compared", _END, "not ⟦self.constant and not  → ⟧sum"),
    ("outputs of different weights are compared", _END, "⟦and not sum(self.terms.values()) → ⟧"),
    (
        "functions that are not increasing are taken off",
        _END,
        "isinstance(curve, Curve)⟦ and curve in _INCREASING → ⟧",
    ),
    ("what a map adds is forgotten", _END, "row.constant⟦ + factor * value.constant → ⟧"),
    (
        "sums that were rounded are numbers of the file",
        _END,
        "output.defect is None⟦ and output.terms is None → ⟧",
    ),
    (
        "sums of constants that count as one of them",
        tested("network/maps/densify.py", "api/test_final_functions"),
        "⟦bool((part <= 1).all()) → True⟧",
    ),
    ("limits at the end of a range that ask for more", _END, "⟦max → min⟧(over, least * width)"),
    ("rows that are met become rows that are not", _END, "⟦-1 if always else  → ⟧1"),
    (
        "a finite mask leaves entries out whatever the scores are",
        tested("network/onnx/softmax.py", "network/test_masks"),
        '{"softmax": 1}⟦ if sure else {} → ⟧',
    ),
    ("limits that were rounded", _END, "⟦ if network.dtype == torch.float64 else None → ⟧"),
)
