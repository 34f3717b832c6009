"""The mutations of the kernels: bounds, their slopes, regions, and smaller networks."""

from __future__ import annotations

Tested = tuple[str, tuple[str, ...]]  # a file of the package, and the files in tests/

_BOUNDS: Tested = (
    "bounds.py",
    ("test_bounds.py", "test_bounds_bundles.py", "test_bounds_rounding.py"),
)
_WITHIN: Tested = ("bounds.py", ("test_bounds_bundles.py", "test_bundles.py"))
_ASCENT: Tested = ("ascent.py", ("test_ascent.py", "test_ascent_weights.py", "test_bundles.py"))
_REGIONS: Tested = ("regions.py", ("test_regions.py", "test_leaves.py"))
_COLLAPSE: Tested = ("collapse.py", ("test_collapse.py",))
_OPPOSITES: Tested = ("opposites.py", ("test_opposites.py",))

# The name, where, the text that is there, and what takes its place.
KERNELS: tuple[tuple[str, Tested, str, str], ...] = (
    ("sign of beta", _BOUNDS, "through = through - multiplier", "through = through + multiplier"),
    (
        "chord and lower line swapped",
        _BOUNDS,
        "torch.addcmul(negative * chord, coefficient.clamp(min=0), low)",
        "torch.addcmul(negative * low, coefficient.clamp(min=0), chord)",
    ),
    ("intercept of the chord dropped", _BOUNDS, "-chord * lower,", "0 * lower,"),
    (
        "slope 1.01",
        _BOUNDS,
        "if alpha is None else alpha\n",
        "if alpha is None else 1.01 * alpha\n",
    ),
    (
        "rounding of the backward pass dropped",
        _BOUNDS,
        "least = nominal - 1.01 * (error + rounding.of_input(weight))",
        "least = nominal",
    ),
    (
        "rounding of the intervals dropped",
        _BOUNDS,
        "return center - reach - error, center + reach + error",
        "return center - reach, center + reach",
    ),
    (
        "an overflow passes for a stable neuron",
        _BOUNDS,
        "lower, upper = lower.nan_to_num(-inf, inf, -inf), upper.nan_to_num(inf, inf, -inf)",
        "pass",
    ),
    (
        "a closed neuron on the wrong side",
        _WITHIN,
        "torch.where(sign > 0,",
        "torch.where(sign < 0,",
    ),
    (
        "negative beta",
        _ASCENT,
        "beta_rate * size * move).clamp(min=0)",
        "beta_rate * size * move)",
    ),
    ("slopes outside [0, 1]", _ASCENT, ").clamp(0, 1)", ").clamp(-1, 2)"),
    (
        "negative weights of rows",
        _ASCENT,
        "grown = weights * torch.exp(4 * rate * value / size)",
        "grown = weights + 4 * rate * value / size",
    ),
    (
        "the coarse bound taken for the proved one",
        _ASCENT,
        "best._replace(least=passed.least,",
        "best._replace(least=best.least.to(passed.least.dtype),",
    ),
    (
        "emptiness without its reach",
        _REGIONS,
        "proved(-sign * form.values - form.reach - form.error)",
        "proved(-sign * form.values - form.error)",
    ),
    (
        "rounding of a region's forms dropped",
        _REGIONS,
        "reach, 1.01 * error, terms)",
        "reach, 0 * error, terms)",
    ),
    (
        "stable neurons swapped",
        _COLLAPSE,
        "coefficient * signs[k - 1].on",
        "coefficient * ~signs[k - 1].off",
    ),
    ("defect dropped", _COLLAPSE, "1.01 * defect.reshape(-1)", "0 * defect.reshape(-1)"),
    ("nearly stable for nothing", _COLLAPSE, " + size @ signs[k - 1].defect", ""),
    (
        "opposites taken for equals",
        _OPPOSITES,
        "pairs.sign < 0, -moved",
        "pairs.sign < 0, 0 * moved",
    ),
    (
        "linear part of an opposite with the wrong sign",
        _OPPOSITES,
        "pairs.sign < 0, -moved",
        "pairs.sign < 0, moved",
    ),
    ("what is dropped costs nothing", _OPPOSITES, "defect + 1.01 * dropped @ most", "defect"),
    (
        "defects of merged neurons dropped",
        _OPPOSITES,
        "defect = defect + 1.01 * moved.abs() @ each",
        "defect = defect + 0 * moved.abs() @ each",
    ),
)
