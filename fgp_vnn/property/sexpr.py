"""S-expressions with their line numbers, read without recursion.

A comment goes from a semicolon to the end of its line. Parsers differ on what ends a line: the
standard's own parser accepts only a line feed, Python's files also a lone carriage return, and
`splitlines` several more characters. Text after such a character in a comment is code for one
parser and comment for another, so it is refused.
"""

from __future__ import annotations

import re
from typing import TypeAlias, Union

from fgp_vnn.base.errors import InputError, UnsupportedError

MAX_DEPTH = 100  # keeps recursion over the tree far from Python's own limit
TEXT_BYTES = 4  # of memory per byte of text
LIST_BYTES = 700  # of memory per list; measured: 2.7 GB for 4.1 million lists in 61 MB of text

# A symbol is a str; a list starts with its line number: [line, element, ...].
Expression: TypeAlias = Union[str, "ListExpression"]
ListExpression: TypeAlias = list[int | Expression]

_TOKEN = re.compile(r"[()]|[^\s()]+")
_CONTROL = re.compile(r"[^\t\f\r\x20-\x7e]")  # neither printable ASCII nor white space
# The line ends of Python's splitlines, in UTF-8 read byte by byte: the last are NEL, LS and PS.
_LINE_END = re.compile(r"[\r\v\f\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")


def text_lines(data: bytes, memory: int) -> list[str]:
    """The lines of a VNN-LIB file without comments; the rest has to be ASCII.

    A file that would take more than `memory` bytes to read is refused before it is parsed.
    """
    needed = TEXT_BYTES * len(data) + LIST_BYTES * data.count(b"(")
    if needed > memory:
        raise UnsupportedError(
            f"to read it takes about {needed:,} bytes of memory, more than the {memory:,} there are"
        )
    data = data.removeprefix(b"\xef\xbb\xbf")
    if (position := data.find(b"\0")) >= 0:
        number = data.count(b"\n", 0, position) + 1
        swapped = "this is not a text file (a network comes before its property)"
        raise InputError(f"line {number}: a zero byte: {swapped}")
    lines = data.decode("latin-1").split("\n")
    if b";" in data:
        lines = [_uncommented(n, line) if ";" in line else line for n, line in enumerate(lines, 1)]
    for number, line in enumerate(lines, 1):
        if (not line.isascii() or not line.isprintable()) and (strange := _CONTROL.search(line)):
            where, code = f"line {number}, column {strange.start() + 1}", ord(strange[0])
            raise InputError(f"{where}: byte 0x{code:02x} is not ASCII text")
    return lines


def _uncommented(number: int, line: str) -> str:
    """The part of a line before its comment."""
    kept, _, comment = line.partition(";")
    if end := _LINE_END.search(comment.rstrip()):
        where = f"line {number}, column {len(kept) + end.start() + 2}"
        code = "".join(f"{ord(char):02x}" for char in end[0])
        raise UnsupportedError(f"{where}: a comment with text after 0x{code}, where it may end")
    return kept


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
    """A shortened text of an expression, for error messages."""
    text = _render(expression)
    return f"'{text[:57]}...'" if len(text) > 60 else f"'{text}'"


def located(error: InputError, line: int) -> InputError:
    """The error with its line in front, unless an inner expression already added one."""
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
    """Line and column of a token, found by its position among the tokens of the line."""
    for index, match in enumerate(_TOKEN.finditer(line)):
        if index == position:
            return f"line {number}, column {match.start() + 1}"
    raise AssertionError("the token is on its line")
