"""A run on disk: results.jsonl and results.csv, appended as results come, by one writer."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from fgp_vnn.base.errors import InputError, one_line
from fgp_vnn.base.records import agree
from fgp_vnn.bench.record import Record, record_from_dict
from fgp_vnn.bench.tables import Key

JSON_LINES = "results.jsonl"
TABLE = "results.csv"
SETTINGS = "run.json"
COUNTEREXAMPLES = "counterexamples"

# A killed process loses nothing that was written; only a power cut can lose what is not yet synced,
# so at most this many seconds of short instances, which then run again.
_SYNC_SECONDS = 1.0


class Journal:
    """The open results of one run.

    results.jsonl is the truth: a result counts once its line is complete. results.csv says the
    same in the competition's format and is written anew from it whenever a run is resumed.
    """

    def __init__(self, folder: Path, records: Iterable[Record]) -> None:
        self.folder = folder
        self.records: dict[Key, Record] = {record.key: record for record in records}
        write_atomically(folder / TABLE, "".join(map(_row, self.records.values())))
        self._lines: IO[str] = (folder / JSON_LINES).open("a", encoding="utf-8")
        self._table: IO[str] = (folder / TABLE).open("a", encoding="utf-8")
        self._synced = -_SYNC_SECONDS
        self._unsynced: list[Path] = []

    def append(self, record: Record, counterexample: str = "") -> Record:
        """Write one result, and its counterexample first, so that no line names a missing file."""
        with _writing(self.folder):
            return self._append(record, counterexample)

    def _append(self, record: Record, counterexample: str) -> Record:
        if counterexample:
            name = hashlib.sha256("\0".join(record.key).encode()).hexdigest()[:16] + ".txt"
            (self.folder / COUNTEREXAMPLES).mkdir(exist_ok=True)
            path = self.folder / COUNTEREXAMPLES / name
            write_atomically(path, counterexample, sync=False)
            self._unsynced.append(path)
            record = replace(record, counterexample=f"{COUNTEREXAMPLES}/{name}")
        self._lines.write(_line(record))
        self._lines.flush()
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self._sync()
        self._table.write(_row(record))
        self._table.flush()
        self.records[record.key] = record
        return record

    def close(self) -> None:
        with _writing(self.folder), self._lines, self._table:
            self._sync()

    def _sync(self) -> None:
        for path in self._unsynced:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        self._unsynced.clear()
        os.fsync(self._lines.fileno())
        self._synced = time.monotonic()


@contextmanager
def open_journal(
    folder: Path, settings: Mapping[str, Any], *, retry_errors: bool = False
) -> Iterator[Journal]:
    """Open a new or an interrupted run for writing; `settings` must be those it was begun with."""
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        with _writing(folder):
            _agree(folder, settings)
            _repair(folder / JSON_LINES)
            records = read_records(folder)
            if retry_errors:
                records = [record for record in records if record.result != "error"]
                write_atomically(folder / JSON_LINES, "".join(map(_line, records)))
            journal = Journal(folder, records)
        try:
            yield journal
        finally:
            journal.close()


def read_records(folder: Path) -> list[Record]:
    """The results of a run, finished or not, without touching it: a torn last line is left out."""
    path = folder / JSON_LINES
    if not path.exists():
        return []
    records = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            records.append(record_from_dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}:{number}: not a result: {error}") from error
    return records


def read_settings(folder: Path) -> dict[str, Any]:
    """What the run was begun with."""
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / SETTINGS}: cannot be read: {error}") from error
    return dict(settings)


def write_atomically(path: Path, content: str | bytes, *, sync: bool = True) -> None:
    """All of it or nothing; with `sync` also if the power goes in between."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say in one line that a folder, or something in it, cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise InputError(f"{folder}: cannot be used for output: {reason}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The kernel drops this lock when the process ends, however it ends."""
    with _writing(folder):
        lock = (folder / "lock").open("a+")
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise InputError(
                f"{folder}: another run (process {file.read().strip() or 'unknown'}) is writing "
                "here; wait for it or give another --out"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _agree(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse to mix results of different settings in one table."""
    if not (folder / SETTINGS).exists():
        if (folder / JSON_LINES).exists():
            raise InputError(f"{folder}: has results but no {SETTINGS}; give another --out")
        write_atomically(folder / SETTINGS, json.dumps(dict(settings), indent=2) + "\n")
        return
    agree(folder, read_settings(folder), settings, "give another --out")


def _repair(path: Path) -> None:
    """Cut off a last line that was not written to its end."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _line(record: Record) -> str:
    return json.dumps(record.as_dict(), allow_nan=True) + "\n"


def _row(record: Record) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(record.as_row())
    return text.getvalue()
