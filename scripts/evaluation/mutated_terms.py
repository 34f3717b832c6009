"""Mutations of single terms of a rounding bound: a test has to notice each one alone."""

from __future__ import annotations

from mutation import Change, tested

_TESTS = "base/test_rounding_terms"
_THEOREM = tested("base/rounding.py", _TESTS)
_BACKWARD = tested("bounds/rounding.py", _TESTS)
_MATRIX = tested("network/maps/affine.py", _TESTS)
_HALFSPACES = tested("regions/halfspaces.py", _TESTS)
_CONJUNCTIONS = tested(
    "search/conjunctions.py",
    "base/test_rounding_rows",
    "search/test_conjunctions::the_rounding_of_the_rows_is_taken_off_their_sum",
)
_JOINT = tested("regions/combined.py", "base/test_rounding_rows")
_REBOUND = tested("search/waiting_bounds.py", "base/test_rounding_rows")

TERMS: tuple[Change, ...] = (
    ("term: sums are no larger", _THEOREM, "return ⟦1 + self.share(operations) → 1.0⟧"),
    ("term: everything is a neuron", _THEOREM, "⟦sqrt(self.underflow / self.eps) → 0.0⟧"),
    ("term: a centre does not move", _THEOREM, ".double()).abs()⟦ →  * 0⟧\n"),
    ("term: a moved centre is free", _THEOREM, "⟦(radius + moved) → radius⟧ *"),
    (
        "term: a larger radius is rounded",
        _THEOREM,
        "⟦(radius + moved) * unit(torch.float64).grow(inputs + 8) → radius + moved⟧",
    ),
    (
        "term: a radius underflows to 0",
        _THEOREM,
        "⟦max(radius, unit(dtype).tiny) if radius else  → ⟧radius",
    ),
    ("term: sizes of 0", _BACKWARD, "size.shape[-1])⟦ + lost → ⟧]"),
    ("term: a map's defect", _MATRIX, "⟦constant = constant + (1 + share) * defect → pass⟧"),
    ("term: a defect rounded down", _MATRIX, "constant = constant + ⟦(1 + share) *  → ⟧d"),
    ("term: sums of a map's outputs", _BACKWARD, "⟦affine.operations + affine.outputs → 1⟧"),
    ("term: what a map's coefficients lose", _MATRIX, "lost * (⟦2 * outputs + 4 + → ⟧"),
    ("term: products with a map's constants", _MATRIX, "floors[-1]⟦ + 8 * outputs * lost → ⟧"),
    ("term: what a weighed error loses", _MATRIX, "4 + ⟦2 → 0⟧ * part.sum"),
    ("term: floors of a map", _BACKWARD, "_wide(terms))⟦ + floor → ⟧\n\n    def of_neurons"),
    ("term: floors of single neurons", _BACKWARD, ".gather(-1, neurons)⟦ + floor → ⟧"),
    ("term: terms of single neurons", _BACKWARD, "return ⟦ → 0 * ⟧terms.expand(len(neurons)"),
    ("term: ReLUs do not round", _BACKWARD, "alpha=⟦share +  → ⟧lost"),
    ("term: coefficients are not flushed", _MATRIX, "(2 * entries + 1) + ⟦8 → 1⟧)"),
    (
        "term: the map below a ReLU",
        _BACKWARD,
        "⟦torch.add(terms, sizes, alpha=share + lost) → (share + lost) * sizes⟧",
    ),
    (
        "term: floors below a ReLU",
        _BACKWARD,
        "⟦torch.add(floor, _sum(sizes), alpha=6 * lost) → 6 * lost * _sum(sizes)⟧",
    ),
    (
        "term: coefficients that are lost at a ReLU",
        _BACKWARD,
        "⟦torch.add(floor, _sum(sizes), alpha=6 * lost) → floor⟧",
    ),
    ("term: intercepts that are lost at a ReLU", _MATRIX, "floors[-1] + ⟦8 → 4⟧ * outputs * lost"),
    ("term: weighed errors that are lost at a ReLU", _MATRIX, "4 + ⟦2 → 1⟧ * part.sum"),
    ("term: offsets of lines do not round", _BACKWARD, "⟦share * highest(envelope) +  → ⟧lost"),
    ("term: lines are not flushed", _BACKWARD, "⟦ + lost * (8 + 8 * read) → ⟧"),
    ("term: the map below lines", _BACKWARD, "own⟦ + self._unit.grow(width + 8) * through → ⟧,"),
    ("term: products with lines", _BACKWARD, "⟦8 * (width + arrive.shape[-1]) → 0⟧"),
    (
        "term: multipliers of neurons below lines",
        _BACKWARD,
        "error⟦ + dot(multiplier.abs(), _wide(each_z)) → ⟧",
    ),
    (
        "term: the centre does not round",
        _BACKWARD,
        "⟦self._unit.share(inputs + 6) → 0⟧ * self._sizes[0] + lost",
    ),
    (
        "term: the centre is not flushed",
        _BACKWARD,
        "self._unit.share(inputs + 6) * self._sizes[0]⟦ + lost → ⟧",
    ),
    ("term: the support is sure", _BACKWARD, "⟦ + self.domain.unsure(weight, reach) → ⟧"),
    ("term: products at the input", _BACKWARD, "unsure(weight, reach)⟦ + floor → ⟧"),
    (
        "term: errors of constraints",
        _HALFSPACES,
        "size_of.⟦grow(steps) * errors + size_of. → ⟧underflow * moves",
    ),
    (
        "term: constraints are not flushed",
        _HALFSPACES,
        "size_of.grow(steps) * errors⟦ + size_of.underflow * moves → ⟧",
    ),
    (
        "term: errors of constraints rounded down",
        _HALFSPACES,
        "⟦size_of.grow(steps) *  → ⟧errors +",
    ),
    (
        "term: sums of constraints do not round",
        _HALFSPACES,
        "⟦size_of.share(steps) * (values.abs() + domain.outer_support(rows)) → 0 * values.abs()⟧",
    ),
    (
        "term: sums of constraints are not flushed",
        _HALFSPACES,
        "return weighed⟦ + size_of.underflow * (6 * count + 8) * moves → ⟧",
    ),
    (
        "term: errors of weighed rows",
        _CONJUNCTIONS,
        "⟦(passed.nominal - passed.least) → 0 * passed.least⟧[pairs]",
    ),
    (
        "term: errors of rows are not flushed",
        _CONJUNCTIONS,
        "value - ⟦(error + size_of.underflow) → error⟧",
    ),
    (
        "term: weighed rows do not round",
        _CONJUNCTIONS,
        "size_of.⟦share(steps) + size_of. → ⟧underflow",
    ),
    (
        "term: weighed rows are not flushed",
        _CONJUNCTIONS,
        "⟦size_of.underflow * (6 * count + 8) * (1 + widths) → 0 * widths⟧",
    ),
    (
        "term: errors of joined constraints",
        _JOINT,
        "⟦(multipliers * system.error[:count].unsqueeze(1)).sum(0) → 0⟧",
    ),
    ("term: joined constraints do not underflow", _JOINT, ".sum(0)⟦ + system.floor → ⟧"),
    (
        "term: the error of a row with them",
        _JOINT,
        "slack⟦ + factor.abs() * system.error.unsqueeze(1) → ⟧",
    ),
    ("term: the length of a sum does not round", _JOINT, "⟦ + share * (own + scaled) → ⟧"),
    ("term: the length of a sum does not underflow", _JOINT, "⟦ + lost * (1 + square) → ⟧"),
    (
        "term: values over caps do not round",
        _REBOUND,
        "⟦size_of.share(first.operations + 8) → 0⟧ * first",
    ),
    (
        "term: values over caps do not underflow",
        _REBOUND,
        "⟦size_of.underflow * (2 * first.underflows(sizes).forward + 8) → 0⟧",
    ),
    ("term: a defect over caps", _REBOUND, "error⟦ + size_of.grow(4) * first.defect → ⟧"),
    ("term: a defect over caps rounded down", _REBOUND, "⟦size_of.grow(4) *  → ⟧first.defect"),
    (
        "term: supports of caps are sure",
        _REBOUND,
        "⟦error = error + caps.unsure(rows, torch.maximum(high.abs(), low.abs())) → pass⟧",
    ),
)
