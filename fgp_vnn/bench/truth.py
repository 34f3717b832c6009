"""Known answers, from a ground_truth.csv beside instances.csv or from any results table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from fgp_vnn.bench.tables import Key, instance_key, read_result_rows, result_word

GROUND_TRUTH = "ground_truth.csv"

Truth = Mapping[Key, str]  # sat or unsat


def read_truth(folders: Iterable[tuple[str, Path]], other: Path | None = None) -> Truth:
    """Return the known answers to the instances of folders (category, path).

    Where the table `other` knows an instance, too, it overrules the folder's own.
    """
    known: dict[Key, str] = {}
    folders = list(folders)
    for category, folder in folders:
        if (folder / GROUND_TRUTH).is_file():
            known.update(_read(folder / GROUND_TRUTH, [category]))
    if other is not None:
        known.update(_read(other, [category for category, _ in folders]))
    return known


def _read(path: Path, categories: list[str]) -> dict[Key, str]:
    """Return the known answers of a table; a row without a category counts for all of them."""
    known: dict[Key, str] = {}
    for _, row in read_result_rows(path):
        word = result_word(row["result"])
        if word in ("sat", "unsat"):
            for category in [row["category"]] if "category" in row else categories:
                known[instance_key(category, row["onnx"], row["vnnlib"])] = word
    return known
