"""From formulas to cases: disjunctive normal form, with boxes apart from output constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.property.formula import And, Bound, Formula, Names, Or, Row
from fgp_vnn.property.model import Case, Conjunction
from fgp_vnn.property.relations import Interval, implied

# A file may list any number of alternatives; these limits apply to multiplying them out.
MAX_CLAUSES = 50_000
MAX_STEPS = 10_000_000  # constraints visited: about ten seconds
_STEPS_EACH = 10  # always allowed for each constraint in the file
MAX_NUMBERS = 50_000_000  # in the boxes and rows of the result: 400 MB


_FREE = Interval()
Box = dict[int, Interval]  # per input; never changed once it is part of a clause


@dataclass(frozen=True, eq=False)
class Clause:
    """A conjunction: the intervals that differ from the common box, and distinct output rows."""

    box: Box
    rows: tuple[Row, ...]


class Expansion:
    """Multiplies formulas out within limits, dropping clauses whose box is empty."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.common: Box = {}  # the box that every clause has to meet
        self.steps, self.most_steps, self.most_clauses = 0, MAX_STEPS, MAX_CLAUSES
        self.dropped = 0  # alternatives that are empty by themselves
        self.contradiction = ""  # the first one found

    def clauses(self, formulas: Iterable[Formula]) -> list[Clause]:
        """Clauses whose disjunction is equivalent to the conjunction of the formulas."""
        whole = And(tuple(formulas))
        constraints, alternatives = _written(whole)
        self.most_steps = max(MAX_STEPS, _STEPS_EACH * constraints)
        self.most_clauses = max(MAX_CLAUSES, alternatives)
        leaves, choices = _flatten(whole)
        common = self._conjoin(Clause({}, ()), leaves)
        if common is None:
            return []
        self.common = common.box
        cut = self._conjoin(Clause(self.common, ()), implied(common.box, common.rows, self.names))
        if cut is None:
            return []
        self.common = cut.box
        clauses = [Clause({}, common.rows)]
        for choice in choices:
            clauses = self._distribute(clauses, choice)
        return clauses

    def _distribute(self, clauses: list[Clause], choice: Or) -> list[Clause]:
        """The distinct conjunctions of a clause with one of the alternatives."""
        found: dict[tuple[frozenset[tuple[int, Interval]], frozenset[Row]], Clause] = {}
        for alternative in choice.parts:
            leaves, inner = _flatten(alternative)
            grown = [self._conjoin(clause, leaves) for clause in clauses]
            part = [clause for clause in grown if clause is not None]
            for nested in inner:
                part = self._distribute(part, nested)
            for clause in part:
                self._spend(1 + len(clause.box) + len(clause.rows))
                found.setdefault((frozenset(clause.box.items()), frozenset(clause.rows)), clause)
            if len(found) > self.most_clauses:
                most = f"{self.most_clauses:,}"
                raise UnsupportedError(f"more than {most} alternatives, multiplied out")
        return list(found.values())

    def _conjoin(self, clause: Clause, leaves: Sequence[Bound | Row]) -> Clause | None:
        """The clause with more constraints, or None if its box becomes empty."""
        self._spend(1 + len(leaves) + len(clause.rows))
        rows = dict.fromkeys(clause.rows)
        box = clause.box
        for leaf in leaves:
            if isinstance(leaf, Row):
                rows[leaf] = None
                continue
            old = box.get(leaf.input) or self.common.get(leaf.input, _FREE)
            new = old.cut(leaf)
            if new is old:
                continue
            if new.empty:
                self._note_contradiction(leaf, old)
                # Alternatives of different asserts often exclude each other;
                # an alternative that is empty by itself deserves a warning.
                self.dropped += leaf.input not in clause.box
                return None
            if box is clause.box:
                self._spend(len(box))
                box = dict(box)
            box[leaf.input] = new
        return Clause(box, tuple(rows))

    def _note_contradiction(self, bound: Bound, old: Interval) -> None:
        if self.contradiction:
            return
        sign = ("<" if bound.upper else ">") + ("" if bound.strict else "=")
        low = f"{'(' if old.open_lower else '['}{old.lower!r}"
        high = f"{old.upper!r}{')' if old.open_upper else ']'}"
        name = self.names.name(bound.input)
        where = f"line {bound.line}: " if bound.line else ""  # an implied bound has no line
        self.contradiction = (
            f"{where}{name} {sign} {bound.value!r} contradicts {name} in {low}, {high}"
        )

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > self.most_steps:
            raise UnsupportedError("too many combinations of alternatives to multiply out")


def to_cases(names: Names, formulas: Iterable[Formula]) -> tuple[tuple[Case, ...], list[str]]:
    """The cases of a property, one for each distinct box, and warnings."""
    expansion = Expansion(names)
    clauses = [clause for clause in expansion.clauses(formulas) if not _opposed(clause.rows)]
    warnings = []
    if not clauses:
        why = expansion.contradiction or "a comparison of constants or outputs is never true"
        warnings.append(f"no input meets the constraints: nothing can break them ({why})")
    elif expansion.dropped:
        warnings.append(f"an empty input box was dropped ({expansion.contradiction})")
    if any(not clause.rows for clause in clauses):
        warnings.append("no constraint on the output: every input of a box is a counterexample")
    boxes = len({id(clause.box) for clause in clauses})
    rows = sum(len(clause.rows) for clause in clauses)
    if 2 * boxes * names.inputs + rows * names.width > MAX_NUMBERS:
        raise UnsupportedError(f"{len(clauses):,} alternatives of this size are too many")
    return tuple(_grouped(clauses, expansion.common, names)), warnings


def _grouped(clauses: list[Clause], common: Box, names: Names) -> Iterator[Case]:
    """A case for each distinct box, with the conjunctions of all clauses that have it."""
    filled: dict[int, Case] = {}  # by identity of the box: most clauses share one
    first: dict[tuple[bytes, ...], Case] = {}
    unsafe: dict[tuple[bytes, ...], list[Conjunction]] = {}
    for clause in clauses:
        if id(clause.box) not in filled:
            filled[id(clause.box)] = _case(clause.box, common, names)
        box = filled[id(clause.box)]
        arrays = (box.lower, box.upper, box.open_lower, box.open_upper)
        key = tuple(b"" if array is None else array.tobytes() for array in arrays)
        first.setdefault(key, box)
        unsafe.setdefault(key, []).append(_conjunction(clause.rows, names))
    for key, box in first.items():
        yield Case(box.lower, box.upper, tuple(unsafe[key]), box.open_lower, box.open_upper)


def _case(box: Box, common: Box, names: Names) -> Case:
    """A box with all its inputs, and no unsafe set yet."""
    whole = [box.get(i) or common.get(i, _FREE) for i in range(names.inputs)]
    lower, open_lower, upper, open_upper = map(np.array, zip(*whole, strict=True))
    for side, bounds in (("lower", lower), ("upper", upper)):
        if len(missing := np.flatnonzero(np.isinf(bounds))):
            name = names.name(int(missing[0]))
            more = f" (inputs without one: {len(missing)})" if len(missing) > 1 else ""
            raise UnsupportedError(f"{name} has no {side} bound{more}")
    faces = (faces if faces.any() else None for faces in (open_lower, open_upper))
    return Case(lower, upper, (), *faces)


def _conjunction(rows: tuple[Row, ...], names: Names) -> Conjunction:
    matrix = np.zeros((len(rows), names.width))
    for index, row in enumerate(rows):
        for output, coefficient in row.terms:
            matrix[index, output] = coefficient
    limits = np.array([row.limit for row in rows], dtype=np.float64)
    strict = np.array([row.strict for row in rows], dtype=np.bool_)
    written = {index: row.written for index, row in enumerate(rows) if row.written is not None}
    return Conjunction(matrix, limits, strict, written)


def _opposed(rows: tuple[Row, ...]) -> bool:
    """Whether two rows contradict each other for all outputs: r <= a and -r <= b with a + b < 0,
    or a + b = 0 if one of them is strict."""
    least: dict[frozenset[tuple[int, float]], tuple[Fraction, bool]] = {}
    for row in rows if len(rows) > 1 else ():
        limit, strict = row.as_written
        other = least.get(frozenset((i, -c) for i, c in row.terms))
        if other is not None:
            room = limit + other[0]
            if room < 0 or (room == 0 and (strict or other[1])):
                return True
        key = frozenset(row.terms)
        known = least.get(key)
        if known is None or (limit, not strict) < (known[0], not known[1]):
            least[key] = (limit, strict)
    return False


def _written(formula: Formula) -> tuple[int, int]:
    """The number of constraints in a formula, and of alternatives in its disjunctions."""
    if isinstance(formula, (Bound, Row)):
        return 1, 0
    inside = [_written(part) for part in formula.parts]
    own = len(inside) if isinstance(formula, Or) else 0
    return sum(leaves for leaves, _ in inside), own + sum(choices for _, choices in inside)


def _flatten(formula: Formula) -> tuple[list[Bound | Row], list[Or]]:
    """The constraints and the disjunctions whose conjunction is the formula."""
    if isinstance(formula, Or):
        return [], [formula]
    if not isinstance(formula, And):
        return [formula], []
    leaves: list[Bound | Row] = []
    choices: list[Or] = []
    for part in formula.parts:
        if isinstance(part, (Bound, Row)):
            leaves.append(part)
            continue
        more_leaves, more_choices = _flatten(part)
        leaves += more_leaves
        choices += more_choices
    return leaves, choices
