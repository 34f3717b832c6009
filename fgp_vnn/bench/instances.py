"""The instances of a benchmark: a folder with instances.csv, a tree of folders, or a CSV file."""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.network_list import named_networks
from fgp_vnn.base.words import VERSIONS, plural
from fgp_vnn.bench.tables import COLUMNS, Key, Keyed, read_rows


@dataclass(frozen=True)
class Instance(Keyed):
    """A network, a property and a time limit in seconds, and the files they are in."""

    category: str
    onnx: str  # as the CSV file names it
    vnnlib: str
    timeout: float
    network_files: tuple[str, ...]  # existing files; several only with VNN-LIB 2.0
    property_file: str  # an existing file


@dataclass(frozen=True)
class Benchmark:
    """The instances that can run, the problems of other rows, and the folders of all."""

    instances: tuple[Instance, ...]
    problems: tuple[str, ...]
    folders: tuple[tuple[str, Path], ...]  # category and folder


def read_benchmark(source: Path, *, timeout: float | None = None) -> Benchmark:
    """Return the instances of a folder, a tree of folders or a CSV file.

    `timeout` (seconds) replaces the limits of the rows; without it, each row must have a limit.
    """
    instances: list[Instance] = []
    problems: list[str] = []
    places: dict[Key, str] = {}
    tables = _tables(source)
    for category, table, folder in tables:
        try:
            rows = _instance_rows(table)
        except InputError as error:
            problems.append(str(error))
            continue
        for line, cells in rows:
            place = f"{table}:{line}"
            try:
                instance = _instance(category, cells, folder, timeout)
                first = places.setdefault(instance.key, place)
                if first != place:
                    raise InputError(f"the same instance as {first}")
                instances.append(instance)
            except InputError as error:
                problems.append(f"{place}: {error}")
    folders = tuple((category, folder) for category, _, folder in tables)
    return Benchmark(tuple(instances), tuple(problems), folders)


def select(
    instances: Sequence[Instance],
    *,
    pattern: str | None = None,
    limit: int | None = None,
    shuffle: int | None = None,
) -> tuple[Instance, ...]:
    """Return the instances that match a regular expression, shuffled by a seed, at most `limit`."""
    chosen = list(instances)
    if pattern is not None:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise InputError(f"--filter {pattern!r}: not a regular expression: {error}") from error
        chosen = [instance for instance in chosen if wanted.search(str(instance))]
    if shuffle is not None:
        random.Random(shuffle).shuffle(chosen)
    return tuple(chosen[:limit])


def _tables(source: Path) -> list[tuple[str, Path, Path]]:
    """Return the tables of a benchmark: category, CSV file and folder of its files."""
    if source.is_file():
        parent = source.resolve().parent
        return [(_category(parent), source, parent)]
    if not source.is_dir():
        raise InputError(f"{source}: no such file or folder")
    folders = list(_folders(source))
    if not folders:
        raise InputError(f"{source}: no instances.csv in this folder or below it")
    names = [_category(folder.resolve()) for folder in folders]
    return [  # folders of the same name are called by their path
        (
            name if names.count(name) == 1 else folder.relative_to(source).as_posix(),
            folder / "instances.csv",
            folder,
        )
        for name, folder in zip(names, folders, strict=True)
    ]


def _folders(root: Path) -> Iterator[Path]:
    for parent, below, files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if "instances.csv" in files:
            below.clear()
            yield Path(parent)


def _category(folder: Path) -> str:
    return folder.parent.name if folder.name in VERSIONS else folder.name


def _instance_rows(table: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a table without its header, each with its line number."""
    rows = read_rows(table)
    if rows and rows[0][1][:2] == ["onnx", "vnnlib"]:
        rows = rows[1:]
    if not rows:
        raise InputError(f"{table}: no instances")
    return rows


def _instance(category: str, cells: list[str], folder: Path, timeout: float | None) -> Instance:
    if len(cells) == 3:
        onnx, vnnlib, limit = cells
        places = [folder]
    elif len(cells) == len(COLUMNS):
        category, onnx, vnnlib = cells[:3]
        limit = ""
        below = folder / category
        places = [folder, below, *(below / version for version in VERSIONS), Path()]
    else:
        raise InputError(
            f"expected onnx,vnnlib,timeout or {','.join(COLUMNS)}, "
            f"got {plural(len(cells), 'field')}: {','.join(cells)!r}"
        )
    seconds = timeout if timeout is not None else _seconds(limit)
    names = _networks(onnx)
    place = next((p for p in places if _find(p, names[0])), places[0])
    files = {name: _find(place, name) for name in (*names, vnnlib)}
    if missing := [name for name, file in files.items() if not file]:
        raise InputError(f"missing: {', '.join(missing)} (plain or .gz) in {place}")
    networks = tuple(files[name] for name in names)
    return Instance(category, onnx, vnnlib, seconds, networks, files[vnnlib])


def _find(folder: Path, name: str) -> str:
    """Return the path of a file, if needed with .gz added or removed; empty if there is none."""
    path = os.path.join(folder, name)  # noqa: PTH118  (pathlib is slow over many thousand rows)
    for candidate in (path, f"{path}.gz", path.removesuffix(".gz")):
        if os.path.isfile(candidate):  # noqa: PTH113
            return os.path.normpath(candidate)
    return ""


def _seconds(text: str) -> float:
    if not text:
        raise InputError("the row has no time limit: give --timeout")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"time limit {text!r} is not a positive number of seconds")
    return seconds


def _networks(text: str) -> tuple[str, ...]:
    """Return the names in a network column: one, or "[('f', 'a.onnx'), ('g', 'b.onnx')]"."""
    if not text:
        raise InputError("no network is named")
    listed = named_networks(text)
    return (text,) if listed is None else tuple(listed.values())
