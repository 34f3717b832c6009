"""Mutations of reading and judging networks, properties, points and certificates."""

from __future__ import annotations

from mutation import Change, tested

_CONFIRM = tested("attack/confirm.py", "attack/test_confirm")
_NUMBERS = tested("property/numbers.py", "attack/test_confirm")
_ROUNDINGS = tested(
    "network/onnx/roundings.py",
    "transform/test_float32::a_long_sum_drifts_by_more_than_one_rounding",
    "transform/test_float32::every_order_of_evaluation_is_within_the_bounds",
)
_COMPARE = tested(
    "network/onnx/runtime_check.py",
    "network/test_runtime_check::a_weight_that_is_off_by_a_thousandth_is_noticed",
)
_AFFINITY = tested(
    "network/onnx/affinity.py",
    "bounds/test_operators::negative_factors_of_a_product_do_not_make_terms_negative",
)
_MODEL = tested(
    "property/model.py",
    "property/test_exact::rows_are_evaluated_without_rounding",
    "property/test_exact::a_limit_that_is_no_float64_is_kept_as_written_for_the_judge",
)
_INDICES = tested(
    "property/vnnlib2.py",
    "property/test_errors::bad_text_is_an_input_error_with_its_place",
)
_CHECKED = (
    "certificate/test_bounds::lines_enclose_the_relu_exactly",
    "certificate/test_bounds::no_point_of_the_box_is_outside_of_the_bounds",
    "certificate/test_bounds::bounds_are_below_the_exact_ones_and_close_to_them",
    "certificate/test_numbers",
)
_CHECKER = tested("certificate/checker/bounds.py", *_CHECKED)
_CHECKED_LINES = tested("certificate/checker/lines.py", *_CHECKED)
_CHECK = tested("certificate/checker/check.py", "certificate/test_tampering")
_UNSAFE = tested(
    "certificate/checker/unsafe.py",
    "certificate/test_tampering::multipliers_out_of_form_are_refused",
    "certificate/test_tampering::content_out_of_form_is_refused",
)
_TREES = tested("certificate/checker/trees.py", "certificate/test_trees")
_READER = tested("certificate/checker/forms.py", "certificate/test_network")
_WINDOWS = tested("certificate/checker/windows.py", "certificate/test_network")
_MAXIMA = tested("certificate/checker/maxima.py", "certificate/test_network")
_ACTIVATIONS = tested("certificate/checker/activations.py", "certificate/test_network")

READING: tuple[Change, ...] = (
    ("points are not moved into the box", _NUMBERS, "⟦np.clip(point, lower, upper) → point + 0⟧"),
    ("indices may be negative", _INDICES, "⟦    _check_indices(text)\n → ⟧"),
    ("infinite outputs are confirmed", _CONFIRM, "⟦np.isfinite(y).all() and  → ⟧"),
    ("float32 is exact", _ROUNDINGS, "(⟦share → 0⟧ * terms + small)"),
    (
        "float32 rounds once",
        _ROUNDINGS,
        "⟦max(loss.roundings for loss in read) + steps → min(steps, 1)⟧",
    ),
    ("misread maps pass", _COMPARE, "wrong = ⟦~(off <= most) → off > 1e30⟧"),
    ("maps are not compared one by one", _COMPARE, "if ⟦k in inside → False⟧:"),
    ("negative factors of terms", _AFFINITY, "⟦attribute.f = abs(attribute.f) → pass⟧"),
    ("the property is not evaluated", _CONFIRM, "⟦self.breaks(x, y.astype(np.float64)) → True⟧"),
    ("checker: sign of the multipliers", _CHECKER, "through = through ⟦- → +⟧ multiplier *"),
    ("checker: lines swapped", _CHECKER, "⟦low[:, None], chord → chord[:, None], low⟧[:, None])"),
    (
        "checker: a chord that starts too low",
        _CHECKED_LINES,
        "np.⟦maximum → minimum⟧(-chord * lower, (1 - chord) * upper)",
    ),
    ("checker: rounding dropped", _CHECKER, "constant - ⟦1.01 → 0.0⟧ * error"),
    ("checker: corners swapped", _CHECKER, "np.maximum(slope, 0), ⟦lower → upper⟧)"),
    ("checker: inf as a bound", _CHECKER, "⟦np.isfinite(bound) → bound == bound⟧, bound"),
    ("checker: 0 is enough", _CHECK, "& (bound > ⟦0 → -1⟧)).all():"),
    ("judge: rows rounded", _MODEL, "⟦np.abs(excess) > → excess !=⟧ slack"),
    ("judge: limits rounded", _MODEL, "⟦self.written.get(row, given) → given⟧"),
    ("checker: disjuncts forgotten", _CHECK, "if d not in closed⟦ →  and d < 0⟧]"),
    ("checker: weights below 0", _UNSAFE, "if not ((values >= ⟦0 → -2⟧)"),
    ("checker: another file", _CHECK, "if ⟦digest(content) != → not⟧ name:"),
    ("checker: half a tree", _TREES, "if ⟦not whole or  → ⟧count != trees:"),
    ("checker: half a box", _TREES, "if ⟦waiting or  → ⟧used != len(cuts):"),
    (
        "checker: a cut outside",
        _TREES,
        "if ⟦not box.lower[node] < cut < box.upper[node] → cut != cut⟧:",
    ),
    ("checker: sign of Sub", _READER, "⟦factor *  → ⟧wide(block, shape)"),
    ("checker: padding on the other side", _WINDOWS, "else ⟦rest + half → half + rest⟧"),
    ("checker: a dilated pool", _WINDOWS, "⟦d > 1 or  → ⟧(n - 1) % s >= k"),
    ("checker: padding counts", _WINDOWS, 'get("⟦count_include_pad → pads⟧", 0)'),
    ("checker: slope of the active side", _ACTIVATIONS, "⟦1 -  → ⟧real, np.multiply"),
    ("checker: clipped at 0", _ACTIVATIONS, "form if ⟦level == 0 → True⟧ else plus"),
    ("checker: an odd member left out", _MAXIMA, "[second, ⟦first[half:] → second[:1]⟧]"),
)
