"""S-expressions with the line of each, read without recursion."""

from __future__ import annotations

import re
from typing import TypeAlias, Union

from fgp_vnn.errors import InputError, UnsupportedError

MAX_DEPTH = 100  # what follows a tree may recurse: this keeps it far from Python's own limit
MAX_TEXT = 50_000_000  # bytes; 150,528 inputs take 17 million
MAX_LISTS = 5_000_000  # and 750,000 lists

# A symbol is a str; a list has its line in front: [line, element, ...].
Expression: TypeAlias = Union[str, "ListExpression"]
ListExpression: TypeAlias = list[int | Expression]

_TOKEN = re.compile(r"[()]|[^\s()]+")


def text_lines(data: bytes) -> list[str]:
    """The lines of a VNN-LIB file without comments; what is left of them is ASCII."""
    if len(data) > MAX_TEXT:
        raise UnsupportedError(f"larger than {MAX_TEXT:,} bytes of text")
    if data.count(b"(") > MAX_LISTS:
        raise UnsupportedError(f"more than {MAX_LISTS:,} parentheses")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if (position := data.find(b"\0")) >= 0:
        number = data.count(b"\n", 0, position) + 1
        raise InputError(f"line {number}: a zero byte: this is not a text file")
    lines = data.decode("latin-1").split("\n")
    if b";" in data:
        lines = [line.partition(";")[0] if ";" in line else line for line in lines]
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            column = next(i for i, char in enumerate(line, 1) if not char.isascii())
            code = ord(line[column - 1])
            raise InputError(f"line {number}, column {column}: byte 0x{code:02x} is not ASCII text")
    return lines


def read_expressions(lines: list[str]) -> list[ListExpression]:
    """The lists at the top level, in order."""
    top: list[ListExpression] = []
    stack: list[ListExpression] = []
    current: ListExpression | None = None  # the innermost open list
    find_tokens = _TOKEN.findall
    for number, line in enumerate(lines, 1):
        for position, token in enumerate(find_tokens(line)):
            if token == "(":
                opened: ListExpression = [number]
                if current is None:
                    top.append(opened)
                else:
                    current.append(opened)
                    stack.append(current)
                    if len(stack) >= MAX_DEPTH:
                        where = _where(number, line, position)
                        raise UnsupportedError(f"{where}: nested deeper than {MAX_DEPTH} levels")
                current = opened
            elif current is None:
                raise InputError(f"{_where(number, line, position)}: unexpected {quoted(token)}")
            elif token == ")":
                current = stack.pop() if stack else None
            else:
                current.append(token)
    if current is not None:
        first = stack[0] if stack else current
        raise InputError(f"line {first[0]}: '(' is never closed: the file ends too early")
    return top


def quoted(expression: object) -> str:
    """A short rendering for an error message."""
    text = _render(expression)
    return f"'{text[:57]}...'" if len(text) > 60 else f"'{text}'"


def located(error: InputError, line: int) -> InputError:
    """The error with its line in front, unless an inner expression has given its own."""
    return error if str(error).startswith("line ") else type(error)(f"line {line}: {error}")


def _render(expression: object) -> str:
    if not isinstance(expression, list):
        return str(expression)
    parts: list[str] = []
    for element in expression[1:]:
        parts.append(_render(element))
        if sum(map(len, parts)) > 60:
            break
    return f"({' '.join(parts)})"


def _where(number: int, line: str, position: int) -> str:
    """Line and column of a token, found again since the reader only counts tokens."""
    for index, match in enumerate(_TOKEN.finditer(line)):
        if index == position:
            return f"line {number}, column {match.start() + 1}"
    raise AssertionError("the token is on its line")
