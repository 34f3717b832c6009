"""Read a VNN-LIB file (1.0 or 2.0, plain or gzip) into a property."""

from __future__ import annotations

from pathlib import Path

from fgp_vnn.base.collector import collector_paused
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.files import read_bytes
from fgp_vnn.base.words import Version
from fgp_vnn.property.model import Joint, Property
from fgp_vnn.property.normal import to_cases
from fgp_vnn.property.sexpr import TEXT_BYTES, read_expressions, text_lines
from fgp_vnn.property.vnnlib1 import read_vnnlib1

MEMORY = 8 << 30  # bytes that reading may use by default
LEAST = 512 << 20  # bytes of memory that reading may always use, however small the budget


def load_property(path: str | Path, memory: int = MEMORY, *, joint: bool = False) -> Property:
    """Read a property, using at most `memory` bytes; any problem with the file raises an
    InputError of one line.

    Several networks, and constraints that relate inputs to each other or to outputs, are allowed
    only with `joint`: the property is then about the joint network.
    """
    memory = max(memory, LEAST)
    data = read_bytes(Path(path), "property", most=memory // TEXT_BYTES)
    try:
        with collector_paused():
            return parse_property(data, memory, joint=joint)
    except InputError as error:
        raise type(error)(f"property {path}: {error}") from None
    except (RecursionError, MemoryError) as error:
        what = type(error).__name__
        raise UnsupportedError(f"property {path}: too large to be read ({what})") from None


def parse_property(data: bytes, memory: int = MEMORY, *, joint: bool = False) -> Property:
    """Parse the content of a property file, using at most `memory` bytes."""
    lines = text_lines(data, memory)
    expressions = read_expressions(lines)
    if not expressions:
        raise InputError("the file is empty")
    heads = {str(expression[1]) for expression in expressions if len(expression) > 1}
    version: Version = "2.0" if heads & {"vnnlib-version", "declare-network"} else "1.0"
    if version == "1.0":
        read = read_vnnlib1(expressions, {} if joint else None)
    else:
        from fgp_vnn.property.vnnlib2 import read_vnnlib2

        read = read_vnnlib2(lines, expressions, joint=joint)
    names = read.names
    cases, warnings = to_cases(names, read.formulas)
    together = names.passed or len(read.networks) > 1 or names.inputs < len(read.places)
    made = Joint(read.places, tuple(names.passed or ()), read.networks) if together else None
    return Property(
        cases,
        names.inputs,
        names.width,
        version,
        read.inputs,
        read.outputs,
        tuple(warnings),
        joint=made,
    )
