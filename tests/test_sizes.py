"""The package stays readable: small files, functions that fit a screen, few parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fgp_vnn

PACKAGE = Path(fgp_vnn.__file__).parent
FILE_LINES, FUNCTION_LINES, PARAMETERS = 300, 60, 7
TABLE_LINES = {"strategy.py": 500}  # a list of numbers, all in one file on purpose


def faults(name: str, text: str) -> Iterator[str]:
    """What is too large in the text of a module, a line each."""
    if (lines := len(text.splitlines())) > TABLE_LINES.get(name, FILE_LINES):
        yield f"{name}: {lines} lines"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES:
            yield f"{name}: {node.name} has {lines} lines"
        if (count := len(parameters(node))) > PARAMETERS:
            yield f"{name}: {node.name} has {count} parameters"


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The named parameters of a function, without the object of a method."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in PACKAGE.rglob("*.py")}),
    ids=lambda p: p.relative_to(PACKAGE.parent).as_posix(),
)
def test_files_and_functions_fit_a_reader(folder: Path) -> None:
    found = [fault for path in folder.glob("*.py") for fault in faults(path.name, path.read_text())]
    assert not found


def test_what_is_too_large_is_found() -> None:
    names = ", ".join(f"a{i}" for i in range(PARAMETERS + 1))
    text = f"def f({names}):\n" + "    pass\n" * FUNCTION_LINES + "\n" * FILE_LINES
    assert len(list(faults("m.py", text))) == 3
