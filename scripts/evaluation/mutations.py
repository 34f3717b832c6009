"""Small changes that make a kernel unsound, and the test files that have to notice each.

A change replaces one exact piece of text, which has to occur once in its file.
"""

from __future__ import annotations

from typing import NamedTuple

from mutated_kernels import KERNELS, Tested
from mutated_rounding import ROUNDING


class Mutation(NamedTuple):
    """One change to a file of the package."""

    name: str
    file: str  # in the package
    old: str
    new: str
    tests: tuple[str, ...]  # files in tests/


def _in(file: str, *tests: str) -> Tested:
    return file, tuple(f"{name}.py" for name in tests)


_CAPS = _in("domain/caps.py", "domain/test_caps")
_NEAREST = _in("attack/boundary.py", "attack/test_minimum_norm")
_DECOUPLED = _in("attack/decoupled.py", "attack/test_decoupled", "attack/test_minimum_norm")
_REBOUND = _in("search/rebound.py", "search/test_rebound")
_CLIPPING = _in("search/clipping.py", "search/test_clipping")
_CONJUNCTIONS = _in("search/conjunctions.py", "search/test_conjunctions")
_HIDDEN = _in("search/hidden_neurons.py", "search/test_hidden_neurons")
_REFINE = _in("bounds/hidden.py", "bounds/test_hidden")
_BUNDLES = _in("search/bundles.py", "search/test_bundles")
_BEST_FIRST = _in("search/best_first.py", "search/test_neurons")
_NEURONS = _in("search/neurons.py", "search/test_neurons")
_INPUTS = _in("search/inputs.py", "search/test_inputs")
_LEAVES = _in("search/leaves.py", "search/test_leaves")
_POLYHEDRA = _in("regions/polyhedra.py", "search/test_leaves")
_HALFSPACES = _in("regions/halfspaces.py", "regions/test_halfspaces")
_OVERFLOW = _in("regions/halfspaces.py", "engine/test_overflow")
_WALK = _in("search/walk/walk.py", "engine/test_overflow")
_CLIPPED = _in("domain/clipped.py", "domain/test_sets")
_LP = _in("regions/lp.py", "regions/test_lp")
_FRONTIER = _in("search/frontier.py", "search/test_frontier")
_QUERY = _in("query.py", "test_query", "search/test_neurons")
_CONFIRM = _in("attack/confirm.py", "attack/test_confirm")
_ROUNDINGS = _in("network/onnx/roundings.py", "transform/test_float32")
_COMPARE = _in("network/onnx/compare.py", "network/test_compare")
_AFFINITY = _in("network/onnx/affinity.py", "bounds/test_operators")
_MODEL = _in("property/model.py", "property/test_exact")
_CHECKER = _in(
    "certificate/checker/bounds.py", "certificate/test_bounds", "certificate/test_numbers"
)
_CHECK = _in("certificate/checker/check.py", "certificate/test_tampering")
_UNSAFE = _in("certificate/checker/unsafe.py", "certificate/test_tampering")
_TREES = _in("certificate/checker/trees.py", "certificate/test_trees")
_READER = _in("certificate/checker/forms.py", "certificate/test_network")
_WINDOWS = _in("certificate/checker/windows.py", "certificate/test_network")
_MAXIMA = _in("certificate/checker/maxima.py", "certificate/test_network")
_ACTIVATIONS = _in("certificate/checker/activations.py", "certificate/test_network")

_CHANGES: tuple[tuple[str, Tested, str, str], ...] = (
    *KERNELS,
    *ROUNDING,
    (
        "clipped on the wrong side",
        _CLIPPING,
        "torch.where(weight > 0, center + limit, nothing)",
        "torch.where(weight > 0, center - limit, nothing)",
    ),
    (
        "clipped without rounding",
        _CLIPPING,
        "reach - radius + spare",
        "reach - radius",
    ),
    (
        "clipped to all disjuncts at once",
        _CLIPPING,
        "low = torch.where(gone, torch.inf, low).amin(1)",
        "low = torch.where(gone, -torch.inf, low).amax(1)",
    ),
    ("rounding of weighed rows dropped", _CONJUNCTIONS, "(value - rounding)", "value"),
    (
        "rows of other disjuncts weighed too",
        _CONJUNCTIONS,
        "rows = torch.nonzero(query.disjunct == disjunct).flatten()",
        "rows = torch.nonzero(query.disjunct >= 0).flatten()",
    ),
    ("a sum of 0 closes a conjunction", _CONJUNCTIONS, "|= positive(best)", "|= best > -1e-6"),
    (
        "the greatest bound of a neuron's bundles",
        _HIDDEN,
        'waiting["disjunct"], waiting["key"], "amin"',
        'waiting["disjunct"], waiting["key"], "amax"',
    ),
    ("an overflow as a sharpened bound", _HIDDEN, "least, -torch.inf)", "least, torch.inf)"),
    ("an overflow as a refined bound", _REFINE, "torch.fmax(", "torch.maximum("),
    ("the side of a refined bound", _REFINE, "neurons], -high)", "neurons], high)"),
    ("one half twice", _BUNDLES, "for sign in (-1, 1)]", "for sign in (1, 1)]"),
    (
        "a neuron taken for closed",
        _BUNDLES,
        "crossing = torch.cat([none, *masks], -1)",
        "crossing = torch.cat([none, *masks], -1) & (torch.arange(none.shape[0]) > 0)[:, None]",
    ),
    ("a bundle dropped", _BEST_FIRST, "& ~full).flatten()", "& ~full).flatten()[1:]"),
    (
        "0 closes rows that are not strict",
        _NEURONS,
        "torch.where(strict, least >= 0, least > 0)",
        "least >= 0",
    ),
    ("regions left open are forgotten", _NEURONS, "self.unsettled += decided.unsettled", "pass"),
    (
        "an upper half lost",
        _INPUTS,
        "middle), parts.upper])",
        "middle), parts.upper.scatter(-1, index, middle)])",
    ),
    ("boxes too small to split are forgotten", _INPUTS, 'statistics["stuck"] += int', "int"),
    (
        "a region closed by another disjunct",
        _LEAVES,
        ".gather(-1, disjunct.unsqueeze(-1)).squeeze(-1)",
        ".any(-1)",
    ),
    (
        "a region on the other side of its neurons",
        _POLYHEDRA,
        "torch.where(signs > 0, -1, 1)",
        "torch.where(signs > 0, 1, -1)",
    ),
    (
        "negative multipliers as evidence",
        _HALFSPACES,
        "weights = multipliers.clamp(min=0)",
        "weights = multipliers",
    ),
    (
        "rounding of the evidence dropped",
        _HALFSPACES,
        " - doubt(domain, spaces, weights)",
        "",
    ),
    (
        "evidence that a tie is empty",
        _HALFSPACES,
        "positive(nominal(domain, spaces, weights)",
        "positive(1e-6 + nominal(domain, spaces, weights)",
    ),
    (
        "the box's part of a clipped ball dropped",
        _CLIPPED,
        " + along(rest, room)",
        "",
    ),
    (
        "the solver's word for evidence",
        _LP,
        "return mine if proved else None",
        "return mine",
    ),
    ("a record lost", _FRONTIER, "self._size = kept", "self._size = max(kept - 1, 0)"),
    (
        "strictness swapped",
        _QUERY,
        "torch.where(self.strict, lower >= 0, lower > 0)",
        "torch.where(self.strict, lower > 0, lower >= 0)",
    ),
    (
        "a cap as narrow as its level is high",
        _CAPS,
        "((radius - self.level) * (radius + self.level))",
        "((radius - self.level) * (radius - self.level))",
    ),
    (
        "the level of a half-space not divided by its length",
        _CAPS,
        "level = value.unsqueeze(-1) / size",
        "level = value.unsqueeze(-1)",
    ),
    ("overflow taken for a distance", _OVERFLOW, "positive(gap) & reach.isfinite()", "gap > 0"),
    (
        "a row that is no number passed over",
        _WALK,
        "~positive(forms.values[count:] - reach[count:])",
        "(forms.values[count:] <= reach[count:])",
    ),
    (
        "levels measured in the wrong norm",
        _CAPS,
        "if isinstance(ball, Box):",
        "if not isinstance(ball, Box):",
    ),
    (
        "bounds of other bundles",
        _REBOUND,
        "old.index_copy(0, at, new)",
        "old.index_copy(0, at.flip(0), new)",
    ),
    ("the upper side of a cap from below", _REBOUND, "caps.support(-rows)", "caps.support(rows)"),
    ("an empty bundle kept open", _REBOUND, "(lower > upper)", "(lower > upper + 1e30)"),
    ("points are not moved into the box", _CONFIRM, "np.clip(point, lower, upper)", "point + 0"),
    ("infinite outputs are confirmed", _CONFIRM, "np.isfinite(y).all() and ", ""),
    ("float32 is exact", _ROUNDINGS, "(share * terms + small)", "(0 * terms + small)"),
    (
        "float32 rounds once",
        _ROUNDINGS,
        "max(loss.roundings for loss in read) + steps",
        "min(steps, 1)",
    ),
    ("misread maps pass", _COMPARE, "wrong = ~(off <= most)", "wrong = off > 1e30"),
    ("maps are not compared one by one", _COMPARE, "if k in inside:", "if False:"),
    ("negative factors of terms", _AFFINITY, "attribute.f = abs(attribute.f)", "pass"),
    ("the property is not evaluated", _CONFIRM, "self.breaks(x, y.astype(np.float64))", "True"),
    ("points of the same class", _NEAREST, "(outputs.amin(-1) <= 0) & (target", "(target"),
    (
        "a ball that does not shrink",
        _DECOUPLED,
        "torch.minimum(radius * (1 - change), best)",
        "torch.minimum(radius * (1 + change), best)",
    ),
    (
        "the norm itself for its dual",
        _DECOUPLED,
        '"linf": 1.0, "l1": math.inf',
        '"linf": math.inf, "l1": 1.0',
    ),
    (
        "steps out of the clip box",
        _DECOUPLED,
        "x if target.clip is None else target.clip.project(x)",
        "x",
    ),
    (
        "checker: sign of the multipliers",
        _CHECKER,
        "through = through - multiplier *",
        "through = through + multiplier *",
    ),
    (
        "checker: lines swapped",
        _CHECKER,
        "low[:, None], chord[:, None])",
        "chord[:, None], low[:, None])",
    ),
    (
        "checker: a chord that starts too low",
        _CHECKER,
        "np.maximum(-chord * lower, (1 - chord) * upper)",
        "np.minimum(-chord * lower, (1 - chord) * upper)",
    ),
    ("checker: rounding dropped", _CHECKER, "constant - 1.01 * error", "constant - 0.0 * error"),
    (
        "checker: corners swapped",
        _CHECKER,
        "np.maximum(slope, 0), lower)",
        "np.maximum(slope, 0), upper)",
    ),
    ("checker: inf as a bound", _CHECKER, "np.isfinite(bound), bound", "bound == bound, bound"),
    ("checker: 0 is enough", _CHECK, "& (bound > 0)).all():", "& (bound > -1)).all():"),
    ("judge: rows rounded", _MODEL, "np.abs(excess) > slack", "excess != slack"),
    ("judge: limits rounded", _MODEL, "self.written.get(row, given)", "given"),
    (
        "checker: disjuncts forgotten",
        _CHECK,
        "if d not in closed]",
        "if d not in closed and d < 0]",
    ),
    ("checker: weights below 0", _UNSAFE, "if not ((values >= 0)", "if not ((values >= -2)"),
    ("checker: another file", _CHECK, "if digest(content) != name:", "if not name:"),
    ("checker: half a tree", _TREES, "if not whole or count != trees:", "if count != trees:"),
    ("checker: half a box", _TREES, "if waiting or used != len(cuts):", "if used != len(cuts):"),
    (
        "checker: a cut outside",
        _TREES,
        "if not box.lower[node] < cut < box.upper[node]:",
        "if cut != cut:",
    ),
    ("checker: sign of Sub", _READER, "factor * wide(block, shape)", "wide(block, shape)"),
    ("checker: padding on the other side", _WINDOWS, "else rest + half", "else half + rest"),
    ("checker: a dilated pool", _WINDOWS, "d > 1 or (n - 1) % s >= k", "(n - 1) % s >= k"),
    ("checker: padding counts", _WINDOWS, 'get("count_include_pad", 0)', 'get("pads", 0)'),
    (
        "checker: slope of the active side",
        _ACTIVATIONS,
        "1 - real, np.multiply",
        "real, np.multiply",
    ),
    (
        "checker: clipped at 0",
        _ACTIVATIONS,
        "form if level == 0 else plus",
        "form if True else plus",
    ),
    ("checker: an odd member left out", _MAXIMA, "[second, first[half:]]", "[second, second[:1]]"),
)

MUTATIONS = tuple(
    Mutation(name, file, old, new, tests) for name, (file, tests), old, new in _CHANGES
)
