"""Mutations that drop error terms, so that the rounding covered by each is ignored."""

from __future__ import annotations

from mutation import Change, tested

_LOSSES = "base/test_rounding_losses"
_HIDDEN = "base/test_rounding::bounds_of_hidden_neurons_hold_at_all_magnitudes"
_THEOREM = tested(
    "base/rounding.py",
    "base/test_rounding_terms",
    "base/test_rounding_domains::supports_are_not_below_what_a_point_reaches",
    "base/test_rounding::what_overflowed_is_no_bound",
    "base/test_rounding::a_sum_that_is_too_long_has_no_bound",
    "base/test_rounding::a_defect_is_cast_upwards",
)
_BACKWARD = tested("bounds/rounding.py", "base/test_rounding_terms", _LOSSES)
_CHARGE = tested("network/maps/affine.py", "network/test_charges")
_MAPS = tested(
    "network/model.py",
    "network/test_charges",
    _LOSSES,
    "base/test_rounding_terms::what_a_coefficient_loses_counts_times_what_it_is_the_coefficient_of",
    "base/test_rounding::a_defect_is_cast_upwards",
    "base/test_rounding::bounds_in_float32_hold_for_weights_that_are_none",
)
_INTERVAL = tested("bounds/intervals.py", _LOSSES, _HIDDEN)
_FORWARD = tested("bounds/forward.py", _LOSSES, _HIDDEN)
_REGIONS = tested(
    "regions/forms.py", _LOSSES, "regions/test_forms::the_error_term_covers_all_rounding"
)
_WALK = tested(
    "regions/triangular.py",
    "base/test_rounding::forms_of_regions_are_within_their_errors_at_all_magnitudes",
)
_CONDENSE = tested(
    "transform/chain_forms.py",
    "base/test_rounding::condensed_maps_and_bounds_hold_at_all_magnitudes",
)
_REDUCTION = tested(
    "transform/inputs.py", "base/test_rounding::networks_with_fewer_inputs_are_within_their_defects"
)
_DOMAIN = tested("domain/sets.py", "base/test_rounding_domains")
_CAPS = tested("domain/caps.py", "base/test_rounding_domains")
_DEPLOYED = tested("network/onnx/roundings.py", "transform/test_float32_underflow")
_COLUMNS = tested("transform/columns.py", "transform/test_columns_rounding")
_PARTS = tested("transform/columns.py", "transform/test_columns")
_INTERVALS = tested("transform/chain_forms.py", "transform/test_columns", "transform/test_chains")
_PATCHES = tested("bounds/patches.py", "bounds/test_patches_rounding")
_WINDOWS = tested("network/maps/patches.py", "bounds/test_patches")

ROUNDING: tuple[Change, ...] = (
    ("rounding: no underflow", _THEOREM, "return ⟦8 → 0⟧ * self.tiny"),
    ("rounding: no relative error", _THEOREM, "return ⟦operations * self.eps → 0.0⟧ if"),
    ("rounding: no sum is too long", _THEOREM, "<= 0.25 else ⟦inf → 0.25⟧"),
    (
        "rounding: squares do not underflow",
        _THEOREM,
        "⟦sqrt(4 * self.underflow * count) → 0.0 * count⟧",
    ),
    ("rounding: overflow as a lower bound", _THEOREM, "bound⟦.nan_to_num(-inf, -inf, -inf) → ⟧"),
    ("rounding: overflow as an upper bound", _THEOREM, "bound⟦.nan_to_num(inf, inf, inf) → ⟧"),
    ("rounding: overflow as a proof", _THEOREM, "or_zero)⟦ & (bound < inf) → ⟧"),
    ("rounding: casts to the nearest", _THEOREM, "torch.where(cast > ⟦values → inf⟧,"),
    (
        "rounding: casts that underflow to 0",
        _THEOREM,
        "torch.where(values < 0, ⟦-tiny → 0.0⟧, 0.0)",
    ),
    (
        "rounding: roundings of a map dropped",
        _BACKWARD,
        "affine.charge(read, ⟦self._unit.share(steps) → 0.0⟧)",
    ),
    (
        "rounding: what a map's constants lose dropped",
        _CHARGE,
        "⟦ + lost * (times * gone.forward + 8) → ⟧",
    ),
    (
        "rounding: what a map's coefficients lose dropped",
        _CHARGE,
        "⟦lost → 0⟧ * (gone.backward + weighed)",
    ),
    (
        "rounding: what products with a kept matrix lose",
        _CHARGE,
        "share * matrix⟦ + times * lost → ⟧",
    ),
    (
        "rounding: what the constants of a kept matrix lose",
        _CHARGE,
        "⟦ + lost * (times * (2 * entries + 1) + 8) → ⟧",
    ),
    ("rounding: what a matrix's constants lose", _MAPS, "⟦2 * entries + → 0 *⟧ read,"),
    ("rounding: what a matrix loses backwards", _MAPS, "⟦(2 * self.outputs + 2) → 0⟧ * read"),
    (
        "rounding: defects cast to the nearest",
        _MAPS,
        "⟦-rounded_down(-self.defect.to(device), dtype) → self.defect.to(device, dtype)⟧",
    ),
    (
        "rounding: intervals do not round",
        _INTERVAL,
        "⟦reach = reach + affine.charge([box.sizes], share, 3).terms → pass⟧",
    ),
    ("rounding: intervals do not underflow", _INTERVAL, "share, ⟦3 → 0⟧).terms\n    return"),
    ("rounding: forms do not round", _FORWARD, "size = ⟦ → 0 * ⟧layer.magnitude(sizes)"),
    (
        "rounding: forms do not underflow",
        _FORWARD,
        "⟦size_of.underflow → 0⟧ * (layer.underflows(sizes).forward + 4)",
    ),
    (
        "rounding: regions do not round",
        _REGIONS,
        "⟦size_of.share(2 * affine.operations + 8) → 0⟧ * affine.magnitude(there)",
    ),
    (
        "rounding: regions do not underflow",
        _REGIONS,
        "⟦size_of.underflow * (gone + 8) → 0⟧ * moves",
    ),
    ("rounding: the walk does not round", _WALK, "⟦ + size_of.share(steps) * size → ⟧"),
    ("rounding: the walk does not underflow", _WALK, "error⟦ + size_of.underflow * small → ⟧"),
    (
        "rounding: condensed forms do not round",
        _CONDENSE,
        "⟦self.unit.share(affine.operations + 8) → 0⟧ * size",
    ),
    (
        "rounding: condensed forms do not underflow",
        _CONDENSE,
        " * size⟦ + self.unit.underflow * small → ⟧",
    ),
    (
        "rounding: forms by columns do not round",
        _COLUMNS,
        "⟦self.unit.share(affine.operations + 8) → 0⟧ * size",
    ),
    (
        "rounding: forms by columns do not underflow",
        _COLUMNS,
        "lost = ⟦2 * self.unit.underflow * small → 0⟧",
    ),
    (
        "rounding: a map by columns is what it is meant to be",
        _COLUMNS,
        "carried⟦ + affine.defect → ⟧",
    ),
    (
        "columns: the unstable neurons of a part are the first ones",
        _PARTS,
        "self.unstable[⟦first : first + → :⟧ len(rest)]",
    ),
    (
        "columns: unstable neurons do not move in an interval",
        _INTERVALS,
        "terms + size, reach⟦ + size / 2 → ⟧",
    ),
    ("rounding: rows in windows do not round", _PATCHES, "below(constant - reach⟦ - error → ⟧)"),
    (
        "windows: coefficients outside of a plane are kept",
        _WINDOWS,
        "patch.rows⟦ * mask[:, None, :, :, None] → ⟧",
    ),
    (
        "rounding: fixed inputs do not round",
        _REDUCTION,
        "⟦size_of.share(len(fixed) + 4) → 0⟧ * terms",
    ),
    (
        "rounding: a box does not underflow",
        _DOMAIN,
        "⟦(sizes * (radius + lost)).sum(-1) + lost * sizes.shape[-1] → (sizes * radius).sum(-1)⟧",
    ),
    (
        "rounding: a ball does not underflow",
        _DOMAIN,
        "⟦ + unit(rows.dtype).root(rows.shape[-1]) → ⟧",
    ),
    (
        "rounding: supports do not round",
        _DOMAIN,
        "return ⟦unit(rows.dtype).share(rows.shape[-1] + 10) → 0⟧ * reach",
    ),
    (
        "rounding: levels are not rounded down",
        _CAPS,
        "⟦- size_of.share(4) * level.abs() - size_of.share(8) * far - size_of.underflow → ⟧",
    ),
    ("rounding: flushed programs", _DEPLOYED, "⟦SINGLE.underflow → 0⟧ * (self.underflows"),
)
