"""Mutations of the linear bounds on smooth activations and products."""

from __future__ import annotations

from mutation import Change, tested

_HOLD = "network/test_activations::lines_hold_in_high_precision"
_CURVE = tested("network/activations/curve.py", _HOLD)
_SIGMOIDS = tested("network/activations/sigmoids.py", _HOLD)
_GATES = tested("network/activations/gates.py", _HOLD)
_POWERS = tested("network/activations/powers.py", _HOLD)
_WAVES = tested("network/activations/waves.py", _HOLD)
_JUMPS = tested("network/activations/jumps.py", _HOLD)
_INVERSES = tested("network/activations/inverses.py", _HOLD)
_PRODUCT = tested(
    "network/activations/product.py",
    "network/test_activations::planes_hold_at_random_places_of_the_box",
)
_POLE = tested(
    "network/activations/curve.py",
    "network/test_activations::an_interval_with_a_pole_has_no_bounds_on_either_side",
)
_LINES = tested(
    "bounds/lines.py",
    "bounds/test_lines",
    "engine/test_smooth::bounds_of_smooth_networks_hold_at_sampled_points",
)
_LAYERS = tested(
    "bounds/layers.py", "engine/test_smooth::bounds_of_smooth_networks_hold_at_sampled_points"
)
_JOINT = tested(
    "bounds/joint_products.py",
    "bounds/test_joint_products::no_sampled_value_is_below_the_linear_bounds",
    "bounds/test_joint_products::no_sampled_value_is_below_where_factors_bend",
    "bounds/test_joint_products::what_overflows_regains_nothing",
)
_PARALLEL = tested(
    "bounds/joint_products.py",
    "bounds/test_joint_products::planes_that_are_not_those_of_the_middle_regain_nothing",
)
_QUADRATIC = tested("network/onnx/quadratic.py", "network/test_quadratic")
_NEURONS = tested(
    "search/neurons.py",
    "engine/test_smooth_splits::what_cannot_be_split_any_more_stays_open",
)
_MANY = tested("engine/many.py", "engine/test_many")
_CHOICES = tested("network/onnx/piecewise_choices.py", "network/test_conditions")
_PIECEWISE = tested(
    "network/onnx/piecewise.py", "network/test_conditions", "network/test_smooth_operators"
)
_MASKS = tested("network/onnx/softmax.py", "network/test_masks")
_QUANTISED = tested("network/onnx/quantised.py", "network/test_conditions")

# Name, file and tests, and the text with the change marked: ⟦original → replacement⟧.
ACTIVATIONS: tuple[Change, ...] = (
    ("only the last piece counts", _CURVE, "⟦torch.minimum(result,  → (⟧_least("),
    ("a concave piece by one end", _CURVE, "⟦torch.minimum(*ends) → ends[0]⟧"),
    ("a convex piece by its ends", _CURVE, "torch.where(curvature < ⟦0 → 2⟧, concave,"),
    ("a tangent by its better end", _CURVE, "lesser = torch.⟦minimum → maximum⟧("),
    ("a tangent without its tilt", _CURVE, "sign * value - slope * t⟦ + lesser → ⟧"),
    ("values of ends are exact", _CURVE, "return sign * value - slope * end⟦ - error → ⟧"),
    (
        "offsets rounded to the nearest",
        _CURVE,
        "offsets = ⟦rounded_down(offsets, dtype) → offsets.to(dtype)⟧",
    ),
    ("poles are passed over", _POLE, "torch.⟦minimum → fmin⟧(result, _least("),
    ("sigmoids are convex", _SIGMOIDS, "Piece(⟦-1 → 1⟧, value, slope, _COUNT, start=0.0"),
    ("the slope of SiLU", _GATES, "s * (1 + z * (1 - s)⟦ →  / 2⟧)"),
    ("an inflection of SiLU", _GATES, "⟦2.3993572805154677 → 2.45⟧"),
    ("GELU bends elsewhere", _GATES, "(-⟦ → 1.2 * ⟧unit, unit)"),
    ("Elu has a larger range", _GATES, "least = -⟦factor * (1 + 4 * EPS) → 0.9 * factor⟧"),
    ("roots are convex", _POWERS, "⟦-1 → 1⟧, torch.sqrt,"),
    ("odd powers are convex", _POWERS, "1⟦ if even else -1 → ⟧"),
    ("arches of sin are exchanged", _WAVES, "== 0, ⟦-1.0,  → 1.0, -⟧1.0)"),
    ("two arches are left out", _WAVES, "first + 1⟦, first + 2, first + 3 → ⟧):"),
    ("Floor rounds up", _JUMPS, 'Rounded("Floor", ⟦1.0, 0.0 → 0.0, 1.0⟧)'),
    ("steps up to a half", _JUMPS, "_flat(0.0, -inf, 0.0), _flat(⟦1.0 → 0.5⟧, 0.0, inf)"),
    ("Asinh is convex on the right", _INVERSES, "(1 + z * z), ⟦-1 → 1⟧)"),
    ("the slope of Tan", _INVERSES, "return 1 + t⟦ * t → ⟧"),
    ("the slope of Atanh", _INVERSES, "1 / (⟦(1 - z) * (1 + z) → 1 - z⟧)"),
    ("Acosh is convex", _INVERSES, "relative(⟦-1 → 1⟧, torch.acosh,"),
    ("Cosh is at least 2", _INVERSES, "torch.sinh), (⟦1.0 → 2.0⟧, inf)"),
    ("powers of a number are steeper", _POWERS, "return ⟦ → 2 * ⟧rate * value(z)"),
    ("a choice is mirrored", _CHOICES, "(⟦first, second → second, first⟧) if found.above"),
    ("a jump is left out", _CHOICES, '("Step", after.start, ⟦ends[1] - ends[0] → 0 * ends[1]⟧)'),
    (
        "a value of a single place is passed over",
        _CHOICES,
        "if ⟦not min(ends) <= value <= max(ends) → False⟧:",
    ),
    (
        "pieces are joined over a value between them",
        _PIECEWISE,
        "if not result or piece⟦[1:] != (*result[-1][1:3], None) → [1:3] != result[-1][1:3]⟧:",
    ),
    ("the other value is chosen", _PIECEWISE, "if value ⟦> → <⟧ level or"),
    ("sizes keep their sign", _PIECEWISE, "⟦-1 if lines[0].at(place) < 0 else  → ⟧1"),
    (
        "masked entries count",
        _MASKS,
        'w.curve("Exp", w.binary("Sub", other, own)), ⟦counted → None⟧)',
    ),
    ("scores of any size", _MASKS, 'scores = ⟦w.curve("Within", scores) → scores⟧'),
    ("whole numbers without ends", _QUANTISED, "⟦float(ends.max) → 1e9⟧, shape"),
    ("Sign jumps at 1", _JUMPS, "inf, 0.0), _flat(1.0, ⟦0.0 → 1.0⟧, inf)), (-1.0"),
    (
        "a corner of a product",
        _PRODUCT,
        "result = found⟦ if result is None else torch.minimum(result, found) → ⟧",
    ),
    ("lines mixed with the wrong weights", _LINES, "1 - first⟦ - last → ⟧, last)"),
    (
        "offsets of the other side",
        _LINES,
        "_offsets⟦(positive, floor) + _offsets(negative, intercept) → (positive, "
        "intercept) + _offsets(negative, floor)⟧",
    ),
    ("infinite offsets count as 0", _LINES, "used ⟦!= 0 → > 2⟧, -torch.inf,"),
    ("what is regained is not proved", _JOINT, "lost[:, rows]⟦ - spare[:, rows] - kept → ⟧"),
    (
        "lines of factors are exact",
        _JOINT,
        "error = ⟦torch.maximum(*sides).clamp(min=0) + → 0 *⟧ spare",
    ),
    ("one line of a factor", _JOINT, "torch.⟦maximum → minimum⟧(*sides).clamp(min=0)"),
    (
        "planes with any slopes are parallel",
        _PARALLEL,
        "⟦torch.where(_parallel(activation, bounds, k), coefficient, 0.0) → coefficient⟧",
    ),
    ("forms only curve up", _JOINT, "⟦values.clamp(max=0).abs() → 0 * values⟧ * spread"),
    (
        "eigenvectors of length 1 along axes",
        _JOINT,
        "vectors.⟦abs().sum(-2).square() → square().sum(-2)⟧",
    ),
    ("factors by the wrong radius", _JOINT, "first = e * ⟦t[:, right] → 0⟧ +"),
    ("concave forms are convex", _QUADRATIC, "Squares(⟦sign → 1⟧, factor, rest)"),
    ("a rest that is rounded", _QUADRATIC, "if ⟦Fraction(result[i, j]) != exact → False⟧:"),
    ("smooth bundles are regions", _NEURONS, "+= ⟦len(at) → 0⟧\n        elif"),
    (
        "halves that were not bounded are proved",
        _MANY,
        "least = np.full((len(boxes.case), network.outputs), ⟦-np.inf → 1e9⟧)",
    ),
    ("upper halves are forgotten", _MANY, "⟦lower → upper⟧[count:][number] = middle"),
    (
        "values of smooth layers like ReLUs",
        _LAYERS,
        "(⟦envelope.least, envelope.greatest → lo.clamp(min=0), up.clamp(min=0)⟧)",
    ),
)
