"""The csv tables of the competition: rows with their line numbers, results, names of files."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.base.errors import InputError

Key = tuple[str, str, str]  # category, network, property, in the spelling of `instance_key`

VERSIONS = ("1.0", "2.0")  # folders of the 2026 layout, below a category

_WORDS = {"sat": "sat", "violated": "sat", "unsat": "unsat", "holds": "unsat", "unknown": "unknown"}


@dataclass(frozen=True)
class ResultRow:
    """One row of a results table: category,onnx,vnnlib,prepare_time,result,run_time."""

    category: str
    onnx: str
    vnnlib: str
    prepare_time: float
    result: str
    run_time: float

    @property
    def key(self) -> Key:
        return instance_key(self.category, self.onnx, self.vnnlib)


def instance_key(category: str, onnx: str, vnnlib: str) -> Key:
    """What makes two rows the same instance, however their paths are spelled."""
    return category, _spelling(category, onnx), _spelling(category, vnnlib)


def _spelling(category: str, name: str) -> str:
    """The path below the category's folder, without `./` and `.gz`."""
    if not name.startswith((".", "/")) and category not in name and not name.endswith(".gz"):
        return name  # the common case, ten thousand times over
    parts = [part for part in name.removesuffix(".gz").split("/") if part not in ("", ".")]
    for position in reversed(range(len(parts) - 1)):
        if parts[position] == category.split("/")[0]:
            parts = parts[position + 1 :]
            break
    if parts[0] in VERSIONS:
        parts = parts[1:]
    return "/".join(parts)


def result_word(text: str) -> str:
    """One of the five words, from whatever a results table has in its place."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    return "timeout" if "timeout" in word else "error"


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The non-empty rows of a csv file (any line ends, quotes, a byte order mark), numbered."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not csv: {error}") from error
    return rows


def read_results_table(path: Path) -> list[ResultRow]:
    """A published results file in the competition's row format."""
    rows = []
    for line, cells in read_rows(path):
        try:
            category, onnx, vnnlib, prepare_time, result, run_time = cells[:6]
            times = float(prepare_time or 0), float(run_time or 0)
        except ValueError:
            raise InputError(
                f"{path}:{line}: expected category,onnx,vnnlib,prepare_time,result,run_time, "
                f"got {','.join(cells)!r}"
            ) from None
        rows.append(ResultRow(category, onnx, vnnlib, times[0], result_word(result), times[1]))
    if not rows:
        raise InputError(f"{path}: no rows")
    return rows
