"""Mutations of second-order forms, and of the code that closes boxes by them."""

from __future__ import annotations

from mutation import Change, tested

_LEAST = tested(
    "bounds/quadratics.py",
    "bounds/test_quadratics::no_value_is_below_the_bounds",
    "bounds/test_quadratics::no_rounding_is_forgotten_where_everything_cancels",
    "bounds/test_quadratics::bounds_hold_in_exact_arithmetic",
    "bounds/test_quadratics::bounds_hold_where_small_numbers_are_flushed",
    "bounds/test_quadratics::the_least_value_of_a_known_form_is_rounded_down",
    "bounds/test_quadratics::the_level_of_a_form_without_a_bend_is_rounded_down",
)
_FORMS = tested(
    "bounds/curved_forms.py",
    "bounds/test_curved_forms",
    "bounds/test_second_order::bounds_hold_in_exact_arithmetic",
    "bounds/test_second_order::no_sampled_value_is_outside_the_bounds",
    "bounds/test_second_order::forms_and_their_errors_reach_every_sampled_value",
)
_EXPANDED = tested(
    "bounds/curved_forms.py",
    "bounds/test_second_order::expansions_hold_in_high_precision",
    "bounds/test_second_order::forms_and_their_errors_reach_every_sampled_value",
)
_CARRIED = tested(
    "bounds/second_order.py",
    "bounds/test_second_order::no_sampled_value_is_outside_the_bounds",
    "bounds/test_second_order::forms_and_their_errors_reach_every_sampled_value",
)
_BENDS = tested("network/activations/bends.py", "network/test_bends")
_BOXES = tested("search/curved_boxes.py", "search/test_curved_boxes")
_TRIAL = tested("search/trial.py", "search/test_trial")

# Name, file and tests, and the text with the change marked: ⟦original → replacement⟧.
CURVED: tuple[Change, ...] = (
    ("symbols keep their signs", _LEAST, "reach = ⟦ → 0 * ⟧mixed.abs().sum(-1)"),
    ("symbols lose nothing", _LEAST, "value.squeeze(-1)⟦ - lost.sum(-1) → ⟧"),
    ("slopes keep their symbols", _LEAST, "slope = slope ⟦- → + 0 *⟧ (alpha"),
    ("forms do not sag", _LEAST, "dropped = ⟦sag.sum(-1) +  → ⟧gap"),
    ("half of the sag", _LEAST, "dropped = sag.sum(-1) ⟦ → / 2 ⟧+ gap"),
    ("a tangent without its value", _LEAST, "level - ⟦bent -  → ⟧reach"),
    ("tangents do not fall", _LEAST, "level - bent⟦ - reach → ⟧"),
    ("quadratic bounds are exact", _LEAST, "form.value - dropped - form.error⟦ - spare → ⟧"),
    ("straight bounds are exact", _LEAST, "return slope, below(level⟦ - spare → ⟧)"),
    (
        "the error of forms is forgotten",
        _LEAST,
        "error = ⟦size_of.grow(4) * error +  → ⟧share * size",
    ),
    (
        "errors of sources are forgotten",
        _FORMS,
        "error = ⟦size_of.grow(steps) → 0⟧ * affine.spread([form.error for form in read])",
    ),
    (
        "maps of forms are exact",
        _FORMS,
        "error = error + ⟦size_of.share(steps) → 0⟧ * affine.magnitude(sizes)",
    ),
    (
        "a chord of ReLUs is too low",
        _FORMS,
        "height = ⟦torch.maximum((1 - chord) * upper, -chord * lower) → (1 - chord) * upper / 2⟧",
    ),
    ("ReLUs without symbols are lines", _FORMS, "error = error + ⟦ → 0 * ⟧height"),
    ("cubic terms are forgotten", _FORMS, "others.abs().sum(1)⟦ + g * d + b * h + b * d → ⟧"),
    (
        "symbols times symbols are forgotten",
        _FORMS,
        "rest =⟦ symbols.abs().sum(1) * others.abs().sum(1) + → ⟧",
    ),
    (
        "errors of factors are forgotten",
        _FORMS,
        "rest = rest + ⟦u.error * (second + v.error) + v.error → 0⟧ * first",
    ),
    ("products of forms are exact", _FORMS, "rest⟦ + size_of.share(steps) * first * second → ⟧"),
    ("squares count twice", _FORMS, "along[:, j] * other[:, i])⟦ * shape.halves → ⟧"),
    ("lines of curves have no room", _FORMS, "⟦(top / 2 - floor / 2).clamp(min=0) → 0 * top⟧)"),
    ("bends do not change", _EXPANDED, "⟦spread.clamp(min=0) * reach → 0⟧ * reach"),
    (
        "a bend at the centre is a whole one",
        _EXPANDED,
        "low / ⟦4 + high / 4 → 2 + high / 2⟧, high / 4 - low / 4",
    ),
    ("dropped symbols are forgotten", _CARRIED, "(form.error + ⟦ → 0 * ⟧dropped)"),
    ("no output bends", _CARRIED, "found |= reads.⟦any(-1) → all(-1) & False⟧"),
    ("an inflection of tanh", _BENDS, "-1 / sqrt(⟦3 → 2⟧)"),
    ("no extremum inside", _BENDS, "torch.⟦where(up, top, torch.maximum(*ends)) → maximum(*ends)⟧"),
    (
        "sin bends like cos",
        _BENDS,
        "return ⟦-envelope.greatest, -envelope.least → envelope.least, envelope.greatest⟧",
    ),
    (
        "errors of mixed rows are forgotten",
        _BOXES,
        "⟦(weights * given.error).sum(-1) + spare → 0 * given.error.sum(-1)⟧",
    ),
    (
        "one row is enough of all",
        _BOXES,
        "bound = alone[:, rows.place]⟦ → .amax(-1, keepdim=True).expand(-1, len(rows.place))⟧",
    ),
    (
        "tangents cut off too much",
        _BOXES,
        "return Backward(weight, level, floor⟦ →  + 0.1⟧, floor, {}), alone",
    ),
    ("bends of the wrong rows", _BOXES, "carried.bend[box, ⟦ → 0 * ⟧rows.bends[row]]"),
    ("only the chosen way closes", _TRIAL, "closed=one⟦ | other → ⟧)"),
    ("slower ways are chosen", _TRIAL, "b * ⟦s > a * t → t > a * s⟧"),
)
