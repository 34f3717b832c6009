"""An independent reader of the bundled VNN-LIB files: boxes and unsafe sets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

from oracle.network import Array

_TOKEN = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True, eq=False)
class Query:
    """Inputs between lower and upper whose outputs meet rows @ y + offsets >= 0 are unsafe."""

    lower: Array  # [inputs]
    upper: Array  # [inputs]
    rows: Array  # [constraints, outputs]
    offsets: Array  # [constraints]


def read_queries(path: Path) -> list[Query]:
    """One query per box and disjunct: the property is broken if any of them has a solution."""
    text = re.sub(r";[^\n]*", "", path.read_text(encoding="ascii"))
    statements = _parse(_TOKEN.findall(text))
    names = [entry[1] for entry in statements if entry[0] == "declare-const"]
    sizes = tuple(sum(name.startswith(kind) for name in names) for kind in "XY")
    asserted = [_alternatives(entry[1]) for entry in statements if entry[0] == "assert"]
    return [_query(list(chain.from_iterable(parts)), sizes) for parts in product(*asserted)]


def _parse(tokens: list[str]) -> list[Any]:
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1:
        raise ValueError("unbalanced parentheses")
    return stack[0]


def _alternatives(formula: Any) -> list[list[Any]]:
    """A formula as a list of conjunctions of comparisons."""
    if formula[0] == "or":
        return [conjunction for part in formula[1:] for conjunction in _alternatives(part)]
    if formula[0] == "and":
        parts = product(*(_alternatives(part) for part in formula[1:]))
        return [[atom for part in chosen for atom in part] for chosen in parts]
    if formula[0] in (">=", "<=") and len(formula) == 3:
        return [[formula]]
    raise ValueError(f"the oracle does not know {formula}")


def _query(atoms: list[Any], sizes: tuple[int, ...]) -> Query:
    lower, upper = np.full(sizes[0], -np.inf), np.full(sizes[0], np.inf)
    rows, offsets = [], []
    for operator, left, right in atoms:
        if left.startswith("X_"):
            index, value = int(left[2:]), float(right)
            if operator == ">=":
                lower[index] = max(lower[index], value)
            else:
                upper[index] = min(upper[index], value)
            continue
        row, offset = np.zeros(sizes[1]), 0.0
        sign = 1.0 if operator == ">=" else -1.0
        for side, name in ((sign, left), (-sign, right)):
            if name.startswith("Y_"):
                row[int(name[2:])] += side
            else:
                offset += side * float(name)
        rows.append(row)
        offsets.append(offset)
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and rows):
        raise ValueError("a query needs both bounds of every input and an output constraint")
    return Query(lower, upper, np.array(rows), np.array(offsets))
