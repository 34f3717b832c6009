"""A run on disk: results.jsonl and results.csv, to which one process appends."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from fgp_vnn.base.errors import InputError, os_reason
from fgp_vnn.base.files import cut_unfinished_line, lock, write_bytes
from fgp_vnn.base.point_table import agree
from fgp_vnn.bench.record import Record, record_from_dict
from fgp_vnn.bench.tables import Key, file_name

JSON_LINES = "results.jsonl"
TABLE = "results.csv"
SETTINGS = "run.json"
COUNTEREXAMPLES = "counterexamples"
CERTIFICATES = "certificates"
LOGS = "logs"
RUNS = "runs"  # in SETTINGS: where, when and how each part of the results was made

_SYNC_SECONDS = 1.0  # a power cut loses the results of at most these seconds; a kill loses none


class Journal:
    """The open results of one run.

    A result counts once its line in results.jsonl is complete. results.csv has the same results
    in the competition's format; it is rewritten whenever a run is resumed.
    """

    def __init__(
        self, folder: Path, records: Iterable[Record], made: Mapping[str, Any] | None
    ) -> None:
        self.folder = folder
        self._made = made
        self.records: dict[Key, Record] = {record.key: record for record in records}
        _write(folder / TABLE, map(_row, self.records.values()))
        self._lines: IO[str] = (folder / JSON_LINES).open("a", encoding="utf-8")
        self._table: IO[str] = (folder / TABLE).open("a", encoding="utf-8")
        self._synced = -_SYNC_SECONDS
        self._unsynced: list[Path] = []

    def append(self, record: Record, counterexample: str = "", log: str = "") -> Record:
        """Write one result, its texts first so that no line names a missing file; return it with
        the names of the files that belong to it."""
        with _writing(self.folder):
            if self._made is not None:
                content = read_settings(self.folder)
                content[RUNS] = [*content.get(RUNS, []), dict(self._made)]
                _write(self.folder / SETTINGS, [json.dumps(content, indent=2) + "\n"])
                self._made = None
            if counterexample:
                name = self._keep(COUNTEREXAMPLES, record.key, counterexample)
                record = replace(record, counterexample=name)
            if log.strip():
                record = replace(record, log=self._keep(LOGS, record.key, log))
            if record.certificate:  # the worker has already written the file
                record = replace(record, certificate=f"{CERTIFICATES}/{record.certificate}")
                self._unsynced.append(self.folder / record.certificate)
            self._lines.write(_line(record))
            self._lines.flush()
            if time.monotonic() - self._synced >= _SYNC_SECONDS:
                self._sync()
            self._table.write(_row(record))
            self._table.flush()
            self.records[record.key] = record
        return record

    def _keep(self, folder: str, key: Key, text: str) -> str:
        """Write a text about an instance to a file named after it; return the file's name."""
        name = f"{folder}/{file_name(key)}.txt"
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self._unsynced.append(path)
        return name

    def close(self) -> None:
        """Flush everything to disk."""
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
    folder: Path,
    settings: Mapping[str, Any],
    *,
    retry_errors: bool = False,
    made: Mapping[str, Any] | None = None,
) -> Iterator[Journal]:
    """Open a new or an interrupted run for writing; `settings` must equal those it began with.

    With `retry_errors`, results that are errors are removed, so that these instances run again.
    `made` says where, when and how results are made; it is added to the settings with the first
    new result.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        with _writing(folder):
            _agree(folder, settings)
            cut_unfinished_line(folder / JSON_LINES)
            records = read_records(folder)
            if retry_errors:
                records = [record for record in records if record.result != "error"]
                write_records(folder, records)
            journal = Journal(folder, records, made)
        try:
            yield journal
        finally:
            journal.close()


def read_records(folder: Path) -> list[Record]:
    """Return the results of a run, finished or not; an incomplete last line is ignored."""
    path = folder / JSON_LINES
    if not path.exists():
        return []
    records = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            records.append(record_from_dict(dict(json.loads(line))))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}:{number}: not a result: {error}") from error
    return records


def write_records(folder: Path, records: Iterable[Record]) -> None:
    """Replace the results of a run."""
    _write(folder / JSON_LINES, map(_line, records))


def read_settings(folder: Path, name: str = SETTINGS) -> dict[str, Any]:
    """Return the settings in a JSON file of a folder; empty if there is no such file."""
    try:
        return dict(json.loads((folder / name).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"{folder / name}: cannot be read: {error}") from error


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn an OSError into an InputError: the folder, or a file in it, cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{folder}: cannot be used for output: {os_reason(error)}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the kernel drops the lock when the process ends."""
    with _writing(folder):
        opened = (folder / "lock").open("a+")
    with opened as file:
        try:
            lock(file)
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
    """Raise InputError if the folder's results were made with other settings. A run that ended
    before its first result may begin again with others."""
    lines, begun = folder / JSON_LINES, read_settings(folder)
    started = lines.exists() and lines.stat().st_size > 0
    if not (folder / SETTINGS).exists() and started:
        raise InputError(f"{folder}: has results but no {SETTINGS}; give another --out")
    if begun and (started or not lines.exists()):
        begun.pop(RUNS, None)
        agree(folder, begun, settings, "give another --out")
    else:
        _write(folder / SETTINGS, [json.dumps(dict(settings), indent=2) + "\n"])


def _write(path: Path, lines: Iterable[str]) -> None:
    write_bytes(path, "".join(lines).encode(), "results")


def _line(record: Record) -> str:
    return json.dumps(vars(record)) + "\n"


def _row(record: Record) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(record.as_row())
    return text.getvalue()
