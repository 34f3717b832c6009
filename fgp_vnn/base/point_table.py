"""Results of many points in a file that grows point by point, as CSV or as JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_writable, cut_unfinished_line, writing

SUFFIXES = (".csv", ".json", ".jsonl")


class PointTable:
    """A file with one line per point, written when the point is done: an interruption loses none.

    `fixed` holds values that all lines share, such as the settings: a run cannot resume from a file
    with other values.
    """

    def __init__(
        self,
        path: Path,
        columns: tuple[str, ...],
        *,
        resume: bool = False,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        check_output(path, resume=resume)
        self._path, self._columns, self._fixed = path, columns, dict(fixed or {})
        self.done = read_point_rows(path) if path.exists() else []
        for row in self.done:
            begun = {name: row.get(name) for name in self._fixed}
            agree(path, begun, self._fixed, "choose another name")
            if path.suffix == ".csv" and tuple(row) != columns:
                raise InputError(f"{path}: has other columns; choose another name")
        cut_unfinished_line(path)
        if path.suffix == ".csv" and not (path.exists() and path.stat().st_size):
            self._write(",".join(columns) + "\n")

    def add(self, row: dict[str, Any]) -> None:
        """Append the row of one point and flush it to the file."""
        row = {**row, **self._fixed}
        if self._path.suffix != ".csv":
            self._write(json.dumps(row) + "\n")
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, extrasaction="ignore", lineterminator="\n")
        writer.writerow({name: _cell(row.get(name)) for name in self._columns})
        self._write(text.getvalue())

    def _write(self, text: str) -> None:
        with writing(), self._path.open("a", newline="") as file:
            file.write(text)


def agree(where: Path, begun: Mapping[str, Any], now: Mapping[str, Any], otherwise: str) -> None:
    """Refuse to mix results of different settings; `otherwise` ends the message with advice."""
    for name in dict.fromkeys((*now, *begun)):
        before, after = (str(_cell(settings.get(name))) for settings in (begun, now))
        if before != after:
            raise InputError(
                f"{where}: begun with {name} {before or 'not given'}, now {after or 'not given'}; "
                f"repeat the first command to resume, or {otherwise}"
            )


def check_output(path: Path, *, resume: bool) -> None:
    """Refuse, before the work begins, a file that `PointTable` would not write."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: results are written as {', '.join(SUFFIXES)}")
    check_writable(path, "output file")
    if path.exists() and not resume:
        raise InputError(
            f"{path} exists already; resume from it with --resume or choose another name"
        )


def read_point_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a file that `PointTable` wrote, without an incomplete last line."""
    try:
        lines = path.read_text().split("\n")[:-1]
        if path.suffix == ".csv":
            return [row for row in csv.DictReader(lines) if None not in row.values()]
        return [dict(json.loads(line)) for line in lines if line]
    except (OSError, TypeError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot resume from this file: {error}") from error


def _cell(value: Any) -> Any:
    """Format a value for CSV: lists as "1 2", dicts as "name=1 other=2", None as empty."""
    if isinstance(value, dict):
        return " ".join(f"{name}={number}" for name, number in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(repr(v) for v in value)
    return "" if value is None else value
