"""Conditions and expressions as readable text, short whatever their size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fgp_vnn.property.formula import And, Bound, Formula, Names, Or, Row

_SHOWN = 4  # parts of a condition, and terms on one side of a comparison
_FLIPPED = {"<=": ">=", "<": ">"}

Terms = Sequence[tuple[str, float]]  # names with their coefficients


def show_formula(formula: Formula, names: Names) -> str:
    """A condition in one line: its first comparisons, and how many there are."""
    return _show(formula, names, top=True)


def show_sum(terms: Terms, constant: float = 0.0) -> str:
    """A sum as text, such as y[0] - 2 y[1] + 0.5; only the first terms are shown."""
    parts = [_term(name, factor) for name, factor in terms[:_SHOWN] if factor]
    parts += ["+ ..."] if len(terms) > _SHOWN else []
    if constant or not parts:
        parts.append(f"{'-' if constant < 0 else '+'} {abs(constant):g}")
    first = parts[0]
    parts[0] = first[2:] if first.startswith("+") else f"-{first[2:]}"
    return " ".join(parts)


def _show(formula: Formula, names: Names, *, top: bool) -> str:
    if isinstance(formula, Bound):
        sign = "<=" if formula.upper else ">="
        name = names.name(formula.input)
        return f"{name} {sign[: 1 if formula.strict else 2]} {formula.value:g}"
    if isinstance(formula, Row):
        return _row(formula, names)
    word = "and" if isinstance(formula, And) else "or"
    if not formula.parts:
        return "true" if word == "and" else "false"
    flat = list(_flattened(formula.parts, type(formula)))
    shown = [_show(part, names, top=len(flat) == 1) for part in flat[:_SHOWN]]
    more = [f"... ({len(flat)} in all)"] if len(flat) > _SHOWN else []
    text = f" {word} ".join([*shown, *more])
    return text if top or len(flat) == 1 else f"({text})"


def _flattened(parts: Iterable[Formula], kind: type[Formula]) -> Iterator[Formula]:
    """The parts of a conjunction of conjunctions, or of a disjunction of disjunctions."""
    for part in parts:
        if isinstance(part, kind) and isinstance(part, (And, Or)):
            yield from _flattened(part.parts, kind)
        else:
            yield part


def _row(row: Row, names: Names) -> str:
    """A comparison of outputs as text; negative terms move to the other side, where they are
    positive."""
    sign = "<" if row.as_written.strict else "<="
    named = [(names.name(names.inputs + output), factor) for output, factor in row.terms]
    less = [(name, factor) for name, factor in named if factor > 0]
    more = [(name, -factor) for name, factor in named if factor < 0]
    if not less and more:
        return f"{show_sum(more)} {_FLIPPED[sign]} {show_sum((), -row.limit)}"
    return f"{show_sum(less)} {sign} {show_sum(more, row.limit)}"


def _term(name: str, factor: float) -> str:
    size = "" if abs(factor) == 1 else f"{abs(factor):g} "
    return f"{'-' if factor < 0 else '+'} {size}{name}"
