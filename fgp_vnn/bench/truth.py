"""Known answers: a ground_truth.csv beside instances.csv, or any table with results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.tables import Key, instance_key, read_rows, result_word

GROUND_TRUTH = "ground_truth.csv"

Truth = Mapping[Key, str]  # sat or unsat


def read_truth(folders: Iterable[tuple[str, Path]], other: Path | None = None) -> Truth:
    """What is known of the instances of the folders (category, path); `other` has the last word."""
    known: dict[Key, str] = {}
    folders = list(folders)
    for category, folder in folders:
        if (folder / GROUND_TRUTH).is_file():
            known.update(_read(folder / GROUND_TRUTH, [category]))
    if other is not None:
        known.update(_read(other, [category for category, _ in folders]))
    return known


def _read(path: Path, categories: list[str]) -> dict[Key, str]:
    """A table with a header (onnx, vnnlib, result, perhaps category), or a results table."""
    rows = read_rows(path)
    if not rows:
        raise InputError(f"{path}: no rows")
    header = [cell.lower() for cell in rows[0][1]]
    if {"onnx", "vnnlib", "result"} <= set(header):
        rows = rows[1:]
    elif len(header) == 6:
        header = ["category", "onnx", "vnnlib", "prepare_time", "result", "run_time"]
    else:
        raise InputError(
            f"{path}: needs a header with onnx, vnnlib and result, "
            "or rows category,onnx,vnnlib,prepare_time,result,run_time"
        )
    known: dict[Key, str] = {}
    for line, cells in rows:
        if len(cells) < len(header):
            raise InputError(f"{path}:{line}: {len(cells)} fields, expected {len(header)}")
        values = dict(zip(header, cells, strict=False))
        word = result_word(values["result"])
        if word in ("sat", "unsat"):
            for category in [values["category"]] if "category" in values else categories:
                known[instance_key(category, values["onnx"], values["vnnlib"])] = word
    return known
