"""The CSV tables of the competition: rows, words for results, names of instances, known answers."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import VERSIONS

Key = tuple[str, str, str]  # category, network, property, in the spelling of `instance_key`

Truth = Mapping[Key, str]  # known answers, sat or unsat

GROUND_TRUTH = "ground_truth.csv"  # beside instances.csv
COLUMNS = ("category", "onnx", "vnnlib", "prepare_time", "result", "run_time")

_WORDS = {"sat": "sat", "violated": "sat", "unsat": "unsat", "holds": "unsat", "unknown": "unknown"}


def instance_key(category: str, onnx: str, vnnlib: str) -> Key:
    """Return the key of an instance, the same however a row spells its paths."""
    return category, _spelling(category, onnx), _spelling(category, vnnlib)


class Keyed:
    """Base of classes about one instance."""

    category: str
    onnx: str
    vnnlib: str

    @property
    def key(self) -> Key:
        return instance_key(self.category, self.onnx, self.vnnlib)

    def __str__(self) -> str:
        return f"{self.category} {self.onnx} {self.vnnlib}"


def file_name(key: Key) -> str:
    """Return a readable and unique name, without a suffix, for files about an instance."""
    words = [Path(part).stem for part in key[1:]]
    readable = re.sub(r"[^\w.-]+", "_", "-".join([key[0], *words]))
    return f"{readable[:150]}-{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:8]}"


def _spelling(category: str, name: str) -> str:
    """Return the path below the category's folder, without `./` and `.gz`."""
    if not name.startswith((".", "/")) and category not in name and not name.endswith(".gz"):
        return name  # the common case of large tables
    parts = [part for part in name.removesuffix(".gz").split("/") if part not in ("", ".")]
    for position in reversed(range(len(parts) - 1)):
        if parts[position] == category.split("/")[0]:
            parts = parts[position + 1 :]
            break
    if parts[0] in VERSIONS:  # a folder of the 2026 layout
        parts = parts[1:]
    return "/".join(parts)


def result_word(text: str) -> str:
    """Return sat, unsat, unknown, timeout or error for any word of a published table."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    return "timeout" if "timeout" in word else "error"


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows of a CSV file, each with its line number."""
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


def read_result_rows(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a results table by column name, each with its place, FILE:LINE.

    A header with onnx, vnnlib and result names the columns; without one they are COLUMNS.
    """
    rows = read_rows(path)
    if not rows:
        raise InputError(f"{path}: no rows")
    names = [cell.lower() for cell in rows[0][1]]
    if {"onnx", "vnnlib", "result"} <= set(names):
        rows = rows[1:]
    else:
        names = list(COLUMNS)
    for line, cells in rows:
        if len(cells) < len(names):
            raise InputError(
                f"{path}:{line}: expected {','.join(names)} (or a header with onnx, vnnlib and "
                f"result), got {','.join(cells)!r}"
            )
    return [(f"{path}:{line}", dict(zip(names, cells, strict=False))) for line, cells in rows]


def read_truth(folders: Iterable[tuple[str, Path]], other: Path | None = None) -> Truth:
    """Return the known answers to the instances of folders (category, path).

    The table `other` takes precedence over the folders' own tables.
    """
    known: dict[Key, str] = {}
    folders = list(folders)
    for category, folder in folders:
        if (folder / GROUND_TRUTH).is_file():
            known.update(_read_truth(folder / GROUND_TRUTH, [category]))
    if other is not None:
        known.update(_read_truth(other, [category for category, _ in folders]))
    return known


def _read_truth(path: Path, categories: list[str]) -> dict[Key, str]:
    """Return the known answers of a table; without a column of categories, rows count for all."""
    known: dict[Key, str] = {}
    for _, row in read_result_rows(path):
        word = result_word(row["result"])
        if word in ("sat", "unsat"):
            for category in [row["category"]] if "category" in row else categories:
                known[instance_key(category, row["onnx"], row["vnnlib"])] = word
    return known
