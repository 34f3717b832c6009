"""What a benchmark holds: a folder with instances.csv, a tree of such folders, or one csv file."""

from __future__ import annotations

import ast
import math
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.tables import VERSIONS, Key, instance_key, read_rows


@dataclass(frozen=True)
class Instance:
    """One row: a network, a property, a time limit in seconds, and where the files are."""

    category: str
    onnx: str  # as the csv names it
    vnnlib: str
    timeout: float
    network_files: tuple[str, ...]  # files that exist; one, but for some queries of VNN-LIB 2.0
    property_file: str  # a file that exists

    @property
    def key(self) -> Key:
        return instance_key(self.category, self.onnx, self.vnnlib)

    def __str__(self) -> str:
        return f"{self.category} {self.onnx} {self.vnnlib}"


@dataclass(frozen=True)
class Benchmark:
    """The instances that can run, what is wrong with the rest, and the folders they are from."""

    instances: tuple[Instance, ...]
    problems: tuple[str, ...]
    folders: tuple[tuple[str, Path], ...]  # category and folder


def read_benchmark(source: Path, *, timeout: float | None = None) -> Benchmark:
    """Read a folder, a tree or a csv file; `timeout` stands in for the limits of the rows."""
    if source.is_dir():
        tables = [
            (category, path / "instances.csv", path) for category, path in _categories(source)
        ]
    elif source.is_file():
        parent = source.resolve().parent
        tables = [(_category(parent), source, parent)]
    else:
        raise InputError(f"{source}: no such file or folder")
    if not tables:
        raise InputError(f"{source}: no instances.csv in this folder or below it")
    reader = _Reader(timeout)
    for category, table, folder in tables:
        reader.read_table(category, table, folder)
    folders = tuple((category, folder) for category, _, folder in tables)
    return Benchmark(tuple(reader.instances), tuple(reader.problems), folders)


def select(
    instances: Sequence[Instance],
    *,
    pattern: str | None = None,
    limit: int | None = None,
    shuffle: int | None = None,
) -> tuple[Instance, ...]:
    """Those whose category and names match a regular expression, shuffled by a seed, cut short."""
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


def _categories(root: Path) -> list[tuple[str, Path]]:
    """Folders below root with an instances.csv; two of one name are told apart by their path."""
    folders = list(_folders(root))
    names = [_category(folder.resolve()) for folder in folders]
    return [
        (name if names.count(name) == 1 else folder.relative_to(root).as_posix(), folder)
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


class _Reader:
    """Collects instances and problems over several tables; lists each directory once."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.instances: list[Instance] = []
        self.problems: list[str] = []
        self._seen: dict[Key, str] = {}
        self._listings: dict[str, frozenset[str]] = {}

    def read_table(self, category: str, table: Path, folder: Path) -> None:
        try:
            rows = read_rows(table)
        except InputError as error:
            self.problems.append(str(error))
            return
        if rows and rows[0][1][:2] == ["onnx", "vnnlib"]:
            rows = rows[1:]
        if not rows:
            self.problems.append(f"{table}: no instances")
        for line, cells in rows:
            try:
                self._add(self._instance(category, cells, folder), f"{table}:{line}")
            except InputError as error:
                self.problems.append(f"{table}:{line}: {error}")

    def _add(self, instance: Instance, place: str) -> None:
        first = self._seen.setdefault(instance.key, place)
        if first != place:
            raise InputError(f"the same instance as {first}")
        self.instances.append(instance)

    def _instance(self, category: str, cells: list[str], folder: Path) -> Instance:
        if len(cells) == 3:
            onnx, vnnlib, limit = cells
            places = [folder]
        elif len(cells) == 6:
            category, onnx, vnnlib = cells[:3]
            limit = ""
            below = folder / category
            places = [folder, below, *(below / version for version in VERSIONS), Path()]
        else:
            raise InputError(
                "expected onnx,vnnlib,timeout or category,onnx,vnnlib,prepare_time,result,run_time,"
                f" got {len(cells)} fields: {','.join(cells)!r}"
            )
        timeout = self.timeout if self.timeout is not None else _seconds(limit)
        names = _networks(onnx)
        place = next((p for p in places if self._find(p, names[0])), places[0])
        files = [(name, self._find(place, name)) for name in (*names, vnnlib)]
        missing = [name for name, file in files if file is None]
        if missing:
            raise InputError(f"missing: {', '.join(missing)} (plain or .gz) in {place}")
        found = [file for _, file in files if file is not None]
        return Instance(category, onnx, vnnlib, timeout, tuple(found[:-1]), found[-1])

    def _find(self, folder: Path, name: str) -> str | None:
        """The file of that name, or with .gz added or taken away."""
        parent, base = os.path.split(os.path.join(folder, name))  # noqa: PTH118
        names = self._listing(parent)
        for candidate in (base, f"{base}.gz", base.removesuffix(".gz")):
            if candidate in names:
                return os.path.normpath(f"{parent}/{candidate}")
        return None

    def _listing(self, folder: str) -> frozenset[str]:
        if folder not in self._listings:
            try:
                with os.scandir(folder or ".") as entries:
                    names = frozenset(entry.name for entry in entries if entry.is_file())
            except OSError:
                names = frozenset()
            self._listings[folder] = names
        return self._listings[folder]


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
    """The files of the network column: one path, or "[('f', 'a.onnx'), ('g', 'b.onnx')]"."""
    names: tuple[str, ...] = (text,)
    if text.startswith("["):
        try:
            names = tuple(str(path) for _, path in ast.literal_eval(text))
        except (ValueError, SyntaxError, TypeError):
            raise InputError(f"not a list of named networks: {text!r}") from None
    if not all(names) or not names:
        raise InputError("no network is named")
    return names
