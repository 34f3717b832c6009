"""The mutations of the kernels: bounds, their slopes, regions, and smaller networks."""

from __future__ import annotations

Tested = tuple[str, tuple[str, ...]]  # a file of the package, and the files in tests/

_BOUNDS: Tested = (
    "bounds/backward.py",
    ("bounds/test_backward.py", "bounds/test_bundles.py", "bounds/test_rounding.py"),
)
_LINES: Tested = (
    "bounds/layers.py",
    ("bounds/test_backward.py", "bounds/test_bundles.py", "bounds/test_ascent.py"),
)
_WITHIN: Tested = ("bounds/layers.py", ("bounds/test_bundles.py", "search/test_bundles.py"))
_ASCENT: Tested = (
    "bounds/slopes.py",
    ("bounds/test_ascent.py", "bounds/test_ascent_weights.py", "search/test_bundles.py"),
)
_REGIONS: Tested = ("regions/forms.py", ("regions/test_forms.py", "search/test_leaves.py"))
_COLLAPSE: Tested = ("transform/stable.py", ("transform/test_stable.py",))
_OPPOSITES: Tested = ("transform/opposites.py", ("transform/test_opposites.py",))

# The name, where, the text that is there, and what takes its place.
KERNELS: tuple[tuple[str, Tested, str, str], ...] = (
    ("sign of beta", _BOUNDS, "through = through - multiplier", "through = through + multiplier"),
    (
        "chord and lower line swapped",
        _LINES,
        "torch.addcmul(negative * chord, coefficient.clamp(min=0), low)",
        "torch.addcmul(negative * low, coefficient.clamp(min=0), chord)",
    ),
    (
        "intercept of the chord dropped",
        _LINES,
        "torch.maximum(-chord * lower, (1 - chord) * upper)",
        "0 * lower",
    ),
    (
        "slope 1.01",
        _LINES,
        "torch.where(mask.unsqueeze(-2), slope, line.low)",
        "torch.where(mask.unsqueeze(-2), 1.01 * slope, line.low)",
    ),
    (
        "rounding of the backward pass dropped",
        _BOUNDS,
        "least = below(nominal - (error + rounding.of_input(weight, reach)))",
        "least = nominal",
    ),
    (
        "rounding of the intervals dropped",
        _BOUNDS,
        "return below(center - reach - error), above(center + reach + error)",
        "return below(center - reach), above(center + reach)",
    ),
    (
        "an overflow passes for a stable neuron",
        _BOUNDS,
        "return below(center - reach - error), above(center + reach + error)",
        "return center - reach - error, center + reach + error",
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
        "return Ascended(passed.least, best",
        "return Ascended(best.least.to(passed.least.dtype), best",
    ),
    (
        "emptiness without its reach",
        _REGIONS,
        "positive(-(sign * form.values + form.reach + form.error))",
        "positive(-(sign * form.values + form.error))",
    ),
    (
        "rounding of a region's forms dropped",
        _REGIONS,
        "reach, error + (values - values), terms)",
        "reach, 0 * error, terms)",
    ),
    (
        "stable neurons swapped",
        _COLLAPSE,
        "coefficient * signs[k - 1].on",
        "coefficient * ~signs[k - 1].off",
    ),
    ("defect dropped", _COLLAPSE, " * defect.reshape(-1)", " * 0 * defect.reshape(-1)"),
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
    ("what is dropped costs nothing", _OPPOSITES, "defect + grow * dropped @ most", "defect"),
    (
        "defects of merged neurons dropped",
        _OPPOSITES,
        "defect = defect + grow * moved.abs() @ each",
        "defect = defect + 0 * moved.abs() @ each",
    ),
)
