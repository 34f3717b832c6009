"""The competition's results file: a status, and after `sat` the counterexample."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes, write_bytes
from fgp_vnn.base.verdict import STATUSES, Counterexample, Status, Verdict
from fgp_vnn.base.words import plural
from fgp_vnn.property.formula import number
from fgp_vnn.property.model import Property, Variable

Array = NDArray[np.float64]

_NAME = re.compile(r"([XY])_(0|[1-9][0-9]{0,9})")
_HEADER = re.compile(r"([A-Za-z_][^\s\[\]()]*)\s+([A-Za-z][^\s\[\]()]*)\s*\[([0-9,\s]*)\]")


@dataclass(frozen=True, eq=False)
class ResultsFile:
    """The content of a results file; x and y are None if it has no values."""

    status: Status
    x: Array | None = None  # [inputs]
    y: Array | None = None  # [outputs]


def format_results(verdict: Verdict, prop: Property | None = None) -> str:
    """The text of the results file; only `sat` needs the property."""
    if verdict.status != "sat":
        return f"{verdict.status}\n"
    example = verdict.counterexample
    if example is None or prop is None:
        raise ValueError("sat needs a counterexample and its property")
    if (example.x.size, example.y.size) != prop.declared:
        raise ValueError("the counterexample does not have the property's sizes")
    if not (np.isfinite(example.x).all() and np.isfinite(example.y).all()):
        raise ValueError("a counterexample has to be finite")
    return "sat\n" + (_assignment(example) if prop.version == "1.0" else _blocks(example, prop))


def write_results(path: str | Path, verdict: Verdict, prop: Property | None = None) -> None:
    """Write the results file atomically: a reader sees either the old or the new content."""
    write_bytes(path, format_results(verdict, prop).encode("ascii"), "results file")


def read_results(path: str | Path, prop: Property | None = None) -> ResultsFile:
    """Parse a results file of any tool, in the form of VNN-LIB 1.0 or 2.0.

    The 2.0 form does not say which variables are inputs; the property does. Without a property,
    names that start with X are inputs and names that start with Y are outputs.
    """
    text = read_bytes(Path(path), "results file").decode("utf-8", errors="replace")
    first, _, rest = text.strip().partition("\n")
    status = next((status for status in STATUSES if status == first.strip()), None)
    try:
        if status is None:
            raise InputError(f"{first.strip()[:40]!r} is none of {', '.join(STATUSES)}")
        if not rest.strip():
            return ResultsFile(status)
        if status != "sat":
            raise InputError(f"text after {status}")
        lines = [line.strip() for line in rest.splitlines() if line.strip()]
        if _HEADER.fullmatch(lines[0]):
            return ResultsFile(status, *_read_blocks(lines, prop))
        return ResultsFile(status, *_read_assignment(rest))
    except InputError as error:
        raise InputError(f"results file {path}: {error}") from None


def _assignment(example: Counterexample) -> str:
    """((X_0 v) ... (Y_0 v)), 17 digits: enough for any float64, so exact for a float32."""
    pairs = [f"(X_{i} {float(v):.17g})" for i, v in enumerate(example.x.ravel())]
    pairs += [f"(Y_{i} {float(v):.17g})" for i, v in enumerate(example.y.ravel())]
    return "(" + "\n".join(pairs) + ")\n"


def _blocks(example: Counterexample, prop: Property) -> str:
    """NAME TYPE [shape], then one value per line; the grammar of 2.0 has no exponents."""
    found: dict[str, list[str]] = {}
    sides = ((example.x, prop.input_variables), (example.y, prop.output_variables))
    for values, variables in sides:
        position = 0
        for variable in variables:
            shape = ",".join(map(str, variable.shape))
            end = position + math.prod(variable.shape)
            found[variable.name] = [f"{variable.name} {variable.type} [{shape}]"]
            found[variable.name] += [_plain(value) for value in values.ravel()[position:end]]
            position = end
        if position != values.size:
            raise ValueError("the property's variables do not have the counterexample's size")
    order = [variable.name for variable in _declared(prop)]
    return "\n".join(line for name in order for line in found[name]) + "\n"


def _declared(prop: Property) -> list[Variable]:
    """All variables of a property in the order of their declarations: network by network."""
    if prop.joint is not None and prop.joint.networks:
        return [v for network in prop.joint.networks for v in (*network.inputs, *network.outputs)]
    return [*prop.input_variables, *prop.output_variables]


def _plain(value: np.float32) -> str:
    wide = np.float64(value)
    return np.format_float_positional(wide, precision=17, unique=False, fractional=False, trim="0")


def _read_assignment(text: str) -> tuple[Array, Array | None]:
    """Pairs of a name and a value, with or without parentheses around each and around all."""
    depth = 0
    for bracket in re.findall(r"[()]", text):
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            break
    if depth:
        raise InputError("the parentheses do not match")
    words = re.sub(r"[()]", " ", text).split()
    if len(words) % 2:
        raise InputError(f"{words[-1][:40]!r} is without its value")
    found: dict[str, list[float]] = {"X": [], "Y": []}
    for name, literal in zip(words[::2], words[1::2], strict=True):
        match = _NAME.fullmatch(name)
        if match is None:
            raise InputError(f"{name[:40]!r} is neither X_i nor Y_i")
        values = found[match[1]]
        if int(match[2]) != len(values):
            raise InputError(f"{name} stands where {match[1]}_{len(values)} should")
        values.append(_value(literal))
    if not found["X"]:
        raise InputError("a counterexample without X_0")
    return np.array(found["X"]), np.array(found["Y"]) if found["Y"] else None


def _read_blocks(lines: list[str], prop: Property | None) -> tuple[Array, Array | None]:
    """Parse blocks of a header line and its values."""
    blocks: list[tuple[Variable, list[float]]] = []
    for line in lines:
        if header := _HEADER.fullmatch(line):
            sizes = header[3].replace(",", " ").split()
            if any(len(size) > 10 for size in sizes):
                raise InputError(f"{header[1][:40]} is too large")
            shape = tuple(map(int, sizes))
            blocks.append((Variable(header[1], header[2], shape), []))
        else:
            blocks[-1][1].append(_value(line))
    for variable, values in blocks:
        if len(values) != math.prod(variable.shape):
            has = plural(len(values), "value")
            raise InputError(f"{variable.name} {list(variable.shape)} has {has}")
    names = [variable.name for variable, _ in blocks]
    inputs, outputs = _sides(blocks, names, prop)
    x = [value for variable, values in blocks if variable.name in inputs for value in values]
    y = [value for variable, values in blocks if variable.name in outputs for value in values]
    return np.array(x), np.array(y) if y else None


def _sides(
    blocks: Sequence[tuple[Variable, list[float]]], names: list[str], prop: Property | None
) -> tuple[set[str], set[str]]:
    """The names of the inputs and of the outputs."""
    if prop is None:
        if strange := [name for name in names if name[0] not in "XY"]:
            raise InputError(f"{strange[0]} may be an input or an output: the property is needed")
        if len(set(names)) < len(names):
            raise InputError("a variable has two values")
        if not any(name[0] == "X" for name in names):
            raise InputError("a counterexample without an input")
        return {n for n in names if n[0] == "X"}, {n for n in names if n[0] == "Y"}
    declared = [(v.name, v.shape) for v in _declared(prop)]
    if [(variable.name, variable.shape) for variable, _ in blocks] != declared:
        expected = ", ".join(f"{name} {list(shape)}" for name, shape in declared)
        raise InputError(f"the variables differ from the property's: {expected}")
    return {v.name for v in prop.input_variables}, {v.name for v in prop.output_variables}


def _value(literal: str) -> float:
    value = number(literal)
    if value is None or math.isinf(value):
        raise InputError(f"{literal[:40]!r} is not a finite number")
    return value
