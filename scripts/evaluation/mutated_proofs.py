"""Mutations of the checker's linear bounds on smooth activations, and of joint properties."""

from __future__ import annotations

from mutation import Change, tested

_CURVES = tested("certificate/checker/curves.py", "certificate/test_curves")
_LINES = tested("certificate/checker/lines.py", "certificate/test_curves")
_BOUNDS = tested("certificate/checker/bounds.py", "certificate/test_curves")
_RELATIONS = tested("property/relations.py", "property/test_joint")
_FORMULA = tested("property/formula.py", "property/test_joint")
_NORMAL = tested("property/normal.py", "property/test_joint")
_MODEL = tested("property/model.py", "property/test_joint")
_JOINED = tested("network/onnx/joined.py", "api/test_joint")

PROOFS: tuple[Change, ...] = (
    ("checker: values are exact", _CURVES, "return ⟦VALUE + SUM → 0⟧ * (1 +"),
    ("checker: concave by one end", _CURVES, "np.inf), ⟦ends[1] → np.inf⟧)"),
    ("checker: a tangent by its better end", _CURVES, "rise = np.⟦minimum → maximum⟧("),
    ("checker: everything is concave", _CURVES, "⟦np.minimum(concave, convex) → concave⟧)"),
    (
        "checker: lines above are not mirrored",
        _CURVES,
        "offset(kind, ⟦-upper, -lower → lower, upper⟧, high)",
    ),
    ("checker: a short series", _CURVES, "range(⟦18 → 9⟧, 0, -1)"),
    ("checker: one corner of a product", _CURVES, "result = ⟦np.minimum(result, found) → found⟧"),
    ("checker: ranges without error", _CURVES, "_function(kind, lower) ⟦- → + 4 *⟧ VALUE"),
    (
        "checker: assumptions cut off the other side",
        _LINES,
        "np.where(leaf.signs ⟦> → <⟧ 0, np.maximum(lower, 0), lower)",
    ),
    (
        "checker: products of any size",
        _BOUNDS,
        "if ⟦not (self._sizes[-1] <= LARGE).all() → False⟧:",
    ),
    (
        "implied bounds from the wrong ends",
        _RELATIONS,
        "[⟦0 if factor > 0 else 1 → 1 if factor > 0 else 0⟧]",
    ),
    ("implied bounds are rounded inwards", _RELATIONS, "up=⟦ → not ⟧upper)"),
    (
        "inputs behind the outputs are exchanged",
        _FORMULA,
        "self.passed.setdefault(variable, len(self.passed))⟦ →  * 0⟧",
    ),
    ("rows that touch exclude each other", _NORMAL, "room < ⟦0 → 1⟧ or"),
    (
        "inputs are judged as they were rounded",
        _MODEL,
        "⟦x[list(self.joint.passed)] → y[self.declared[1] :]⟧])",
    ),
    ("networks read each other's inputs", _JOINED, "runtime.run(x[⟦places → :2⟧])"),
)
