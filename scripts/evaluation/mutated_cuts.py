"""Mutations of caps, of multipliers, and of bounds over a part of the domain."""

from __future__ import annotations

from mutation import Change, tested

_CAPS = tested(
    "domain/caps.py",
    "domain/test_caps::no_point_of_a_cap_is_above_its_support_and_its_maximiser_reaches_it",
    "domain/test_caps::a_cap_that_is_cut_once_more_holds_all_points_of_both_half_spaces",
    "domain/test_caps::the_dual_norm_is_what_a_unit_ball_reaches",
)
_MULTIPLIERS = tested("domain/multipliers.py", "domain/test_multipliers")
_LEFT = tested("domain/caps.py", "domain/test_multipliers")
_CLIPPED_NEURONS = tested(
    "search/clipped_neurons.py", "search/test_clipped_neurons", "search/test_clipped_rounding"
)
_COMPARED = tested("search/clip_bundles.py", "search/test_clip_bundles")
_RECAST = tested("domain/caps.py", "domain/test_caps")
_CLOSING = tested(
    "search/clip_bundles.py",
    "search/test_clipped_neurons::a_search_that_clips_never_proves_what_an_exact_oracle_refutes",
)
_HELD = tested(
    "search/waiting_bounds.py",
    "search/test_clipped_rounding::bounds_that_wait_with_their_bundle_are_rounded_outwards",
)
_AGAIN = tested(
    "search/best_first.py",
    "search/test_best_first::bundles_that_are_bounded_once_more_beside_halves_are_not_lost",
)
_GAINS = tested(
    "search/neurons.py",
    "search/test_clipped_neurons::a_bundle_that_lacks_nothing_is_split_and_not_bounded_for_ever",
)
_JOINED = tested(
    "search/best_first.py",
    "search/test_best_first::what_waits_with_a_bundle_stays_with_it",
)
_REBOUND = tested("search/waiting_bounds.py", "search/test_waiting_bounds")

CUTS: tuple[Change, ...] = (
    (
        "a cap as narrow as its level is high",
        _CAPS,
        "((radius - self.level) * (radius ⟦+ → -⟧ self.level))",
    ),
    (
        "the level of a half-space not divided by its length",
        _CAPS,
        "level = value.unsqueeze(-1)⟦ / size → ⟧",
    ),
    ("a multiplier below 0", _MULTIPLIERS, "torch.where(wanted & (at > 0), ⟦ → -⟧at, 0.0)"),
    ("a level taken off twice", _MULTIPLIERS, "normal)) - ⟦ → 2 * ⟧at * level"),
    (
        "a level taken off twice in a box with many inputs",
        _MULTIPLIERS,
        "radius) - ⟦ → 2 * ⟧at * level",
    ),
    (
        "a support that is too low in a box with many inputs",
        _MULTIPLIERS,
        "value = along(buffer.abs_(), radius)⟦ → .clamp(max=0.9 * own)⟧",
    ),
    (
        "a multiplier below 0 in a box with many inputs",
        _MULTIPLIERS,
        "⟦ → -⟧at.nan_to_num(0.0, _MOST, 0.0).clamp(0, _MOST)",
    ),
    (
        "a bound in float32 taken for one in float64",
        _MULTIPLIERS,
        "support = ⟦_shifted(whole, rows, wide, level, at) → support.to(rows.dtype)⟧",
    ),
    (
        "the rounding of a multiplier left out",
        _MULTIPLIERS,
        "return ⟦size_of.share(inputs + 24) * (own + at * each) + lost * (1 + at) → 0 * at⟧",
    ),
    (
        "a level taken for one from the centre",
        _LEFT,
        "level = self.level⟦ + moved.sum(-1, keepdim=True) → ⟧",
    ),
    ("a half-space that is no number cuts", _LEFT, "known ⟦& level.isfinite() → | True⟧"),
    (
        "a linear bound with its rounding",
        _CLIPPED_NEURONS,
        "constant⟦ - slack - 8 * size_of.underflow → ⟧",
    ),
    ("the other side of a half-space", _LEFT, "normal = ⟦- → ⟧weight / size"),
    (
        "a half-space in float32 without what its weights lose",
        _RECAST,
        "gone = ⟦lost +  → ⟧size_of",
    ),
    ("a half-space around a centre that has moved", _RECAST, "value ⟦+ moved.sum(-1)  → ⟧- gone"),
    (
        "a half-space rounded to nearest",
        _RECAST,
        "⟦rounded_down(value + moved.sum(-1) - gone, single) → (value + "
        "moved.sum(-1) - gone).to(single)⟧",
    ),
    (
        "neurons bounded over caps whatever they cost",
        _CLIPPED_NEURONS,
        "< ⟦part → 1e9⟧ * losses.sum(-1, keepdim=True)",
    ),
    (
        "bounds of bundles in float32 that are not rounded outwards",
        _CLIPPED_NEURONS,
        "tuple(⟦rounded_down(side, dtype) → side.to(dtype)⟧ for side in bounds.lower)",
    ),
    (
        "bounds that wait rounded to nearest",
        _HELD,
        "⟦-rounded_down(-upper, single) → upper.to(single)⟧",
    ),
    (
        "bundles to be bounded once more that are forgotten",
        _AGAIN,
        "parts = ⟦[batch.at(again)] if len(again) else [] → []⟧",
    ),
    (
        "bundles bounded once more where nothing is gained",
        _GAINS,
        "~(rise >⟦ → =⟧ numbers.again * lacks)",
    ),
    (
        "bounds of other bundles beside halves",
        _JOINED,
        "held = {name: torch.cat([p.held[name]⟦ → .flip(0)⟧ for p in parts])",
    ),
    (
        "bundles closed by bounds that do not contradict each other",
        _CLOSING,
        "(low > high⟦ →  - 0.5⟧).any(-1))",
    ),
    (
        "a gain beyond what is lacking",
        _COMPARED,
        "⟦torch.minimum(promised(before.bounded, bounds, at), lacks) → "
        "promised(before.bounded, bounds, at)⟧",
    ),
    ("nothing gained by closing", _COMPARED, "(after.closed[at], ⟦lacks → 0⟧, rise)"),
    ("early gains weigh as much", _COMPARED, "self.gains[1] ⟦/ 2  → ⟧+ more"),
    (
        "the second clipping forgets the first",
        _COMPARED,
        "⟦with_waiting(context, held) → now.bounded⟧.bounds)",
    ),
    ("the lesser gain chosen", _COMPARED, "more ⟦> → <⟧ self"),
    ("tried for ever", _COMPARED, "self.tried += ⟦len(at) → 0⟧"),
    ("levels measured in the wrong norm", _CAPS, "if ⟦ → not ⟧isinstance(ball, Box):"),
    ("bounds of other bundles", _REBOUND, "old.index_copy(0, at⟦ → .flip(0)⟧, new)"),
    ("the upper side of a cap from below", _REBOUND, "caps.support(⟦- → ⟧rows)"),
    ("an empty bundle kept open", _REBOUND, "(lower > upper⟦ →  + 1e30⟧)"),
)
