"""Mutations of the kernels: bounds, their slopes, regions, and reduced networks."""

from __future__ import annotations

from mutation import Change, tested

_SIGNS = tested(
    "bounds/backward.py",
    "bounds/test_bundles::any_slopes_and_multipliers_give_a_bound_of_the_bundle",
)
_PULL = tested("bounds/lines.py", "bounds/test_backward::a_plain_bound_holds_at_every_point")
_PROVED = tested(
    "bounds/backward.py",
    "bounds/test_rounding::proved_bounds_are_below_the_real_network_at_its_corners",
    "bounds/test_rounding::proved_layer_bounds_are_below_the_real_network",
    "bounds/test_rounding::overflow_proves_nothing",
)
_INTERVALS = tested(
    "bounds/intervals.py",
    "bounds/test_rounding::proved_layer_bounds_are_below_the_real_network",
    "bounds/test_rounding::overflow_proves_nothing",
)
_LINES = tested(
    "bounds/layers.py",
    "bounds/test_backward::lines_enclose_the_relu",
    "bounds/test_backward::given_slopes_are_used_for_unstable_neurons_only",
)
_WITHIN = tested(
    "bounds/layers.py", "bounds/test_bundles::the_multiplier_of_the_wrong_sign_would_be_unsound"
)
_ASCENT = tested(
    "bounds/slopes.py",
    "bounds/test_ascent::multipliers_stay_where_they_are_sound",
    "bounds/test_ascent::steps_in_single_precision_give_bounds_that_are_proved_in_full",
    "bounds/test_ascent::it_never_falls_below_the_plain_bound_and_stays_valid",
    "bounds/test_ascent_weights::the_weighed_sum_of_rows_is_bounded_where_its_weights_end",
)
_STEPPING = tested(
    "bounds/stepping.py",
    "bounds/test_ascent::multipliers_stay_where_they_are_sound",
    "bounds/test_stepping::what_is_closed_early_is_left_out_and_the_others_do_not_notice",
)
_REGIONS = tested(
    "regions/forms.py",
    "regions/test_forms::the_region_of_a_point_of_the_domain_is_never_empty",
    "regions/test_forms::the_error_term_covers_all_rounding",
)
_COLLAPSE = tested(
    "transform/stable.py",
    "transform/test_stable::a_sign_known_but_for_rounding_is_taken_as_known_at_the_price_of_a_defect",
    "transform/test_stable::a_defect_of_the_old_network_is_handed_on",
    "transform/test_stable::the_collapsed_network_is_the_same_on_the_domain",
)
_OPPOSITES = tested("transform/opposites.py", "transform/test_opposites")

_WINDOWS = tested("bounds/windows.py", "bounds/test_windows")

KERNELS: tuple[Change, ...] = (
    (
        "windows: the greatest of all patterns",
        _WINDOWS,
        "parts = below(value - reach - error).⟦amin → amax⟧(-1)",
    ),
    (
        "windows: a pattern that overflows is left out",
        _WINDOWS,
        "parts = ⟦below → ⟧(value - reach - error).amin(-1)",
    ),
    (
        "windows: rounding of the layer",
        _WINDOWS,
        "error = ⟦ → 0 * ⟧rounding.of_layer(1, outer, self.beta, of_members)",
    ),
    (
        "windows: rounding of the row that is left",
        _WINDOWS,
        "whole = row @ box.center - far.reshape(())⟦ - off → ⟧",
    ),
    (
        "windows: what they share is not added to the row",
        _WINDOWS,
        "return onto⟦.index_add(0, self._at.flatten(), shared.flatten()) → ⟧",
    ),
    (
        "windows: multipliers of either sign",
        _WINDOWS,
        "self.beta = ⟦(self.beta + rates[1] * steps[1]).clamp(min=0) → self.beta + "
        "rates[1] * steps[1]⟧",
    ),
    ("windows: a bound that is not proved", _WINDOWS, "⟦and bool(positive(self.least())) → ⟧"),
    (
        "windows: the sign of a neuron that is off",
        _WINDOWS,
        "self._sign = ⟦2 * self._on - 1 → 1 - 2 * self._on⟧",
    ),
    ("sign of beta", _SIGNS, "through = through ⟦- → +⟧ multiplier"),
    (
        "chord and lower line swapped",
        _PULL,
        "torch.addcmul(negative * ⟦chord, coefficient.clamp(min=0), low → low, "
        "coefficient.clamp(min=0), chord⟧)",
    ),
    (
        "intercept of the chord dropped",
        _LINES,
        "⟦torch.maximum(-chord * lower, (1 - chord) * upper) → 0 * lower⟧",
    ),
    ("slope 1.01", _LINES, "torch.where(mask.unsqueeze(-2), ⟦ → 1.01 * ⟧slope, line.low)"),
    (
        "rounding of the backward pass dropped",
        _PROVED,
        "least = ⟦below(nominal - (error + rounding.of_input(weight, reach))) → nominal⟧",
    ),
    (
        "rounding of the intervals dropped",
        _INTERVALS,
        "[⟦size → (0 * size)⟧.add(part, alpha=0.5 / share) for",
    ),
    (
        "an overflow passes for a stable neuron",
        _INTERVALS,
        "return ⟦below(center - reach), above(center + reach) → center - reach, center + reach⟧",
    ),
    ("a closed neuron on the wrong side", _WITHIN, "torch.where(sign ⟦> → <⟧ 0,"),
    ("negative beta", _STEPPING, "alpha.clamp(0, 1), beta⟦.clamp(min=0) → ⟧"),
    ("slopes outside [0, 1]", _STEPPING, "State(alpha.clamp(⟦0, 1 → -1, 2⟧)"),
    (
        "negative beta of a step with an aim",
        _STEPPING,
        "moved = ⟦(moved + self._beta).clamp(min=0) → moved + self._beta⟧",
    ),
    (
        "slopes outside [0, 1] of a step with an aim",
        _STEPPING,
        "(state.alpha + self._alpha).clamp(⟦0, 1 → -1, 2⟧)",
    ),
    (
        "multipliers of another bundle, after some were left out",
        _STEPPING,
        "self._left = left⟦ if self._left is None else self._left[left] → ⟧",
    ),
    (
        "negative weights of rows",
        _ASCENT,
        "grown = weights ⟦* torch.exp(rate * value / size) → + rate * value / size⟧",
    ),
    (
        "the nominal bound taken for the proved one",
        _ASCENT,
        "return Ascended(passed.⟦least → nominal⟧, best",
    ),
    (
        "emptiness without its reach",
        _REGIONS,
        "positive(-(sign * form.values + form.⟦reach + form. → ⟧error))",
    ),
    (
        "rounding of a region's forms dropped",
        _REGIONS,
        "reach, ⟦error + (values - values) → 0 * error⟧, terms)",
    ),
    ("stable neurons swapped", _COLLAPSE, "coefficient * ⟦signs[k - 1].on → ~signs[k - 1].off⟧"),
    ("defect dropped", _COLLAPSE, " * ⟦ → 0 * ⟧defect.reshape(-1)"),
    ("nearly stable for nothing", _COLLAPSE, "⟦ + size @ signs[k - 1].defect → ⟧"),
    ("opposites taken for equals", _OPPOSITES, "pairs.sign < 0, ⟦- → 0 * ⟧moved"),
    ("linear part of an opposite with the wrong sign", _OPPOSITES, "pairs.sign < 0, ⟦- → ⟧moved"),
    (
        "what is dropped costs nothing",
        _OPPOSITES,
        "⟦torch.where(left, gone, 0.0) → 0 * gone⟧ @ most",
    ),
    (
        "defects of merged neurons dropped",
        _OPPOSITES,
        "⟦defect = defect + (size + size_of.underflow) @ (each + size_of.underflow) → pass⟧",
    ),
)
