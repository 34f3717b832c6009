"""The output of a process in its log file."""

from __future__ import annotations

from pathlib import Path

from fgp_vnn.base.errors import plain

_LOG_BYTES = 1 << 20  # kept of the output about one instance
_LAST_BYTES = 4096  # searched for the last line


def printed(log: Path, begin: int, most: int = _LOG_BYTES) -> str:
    """Return the last `most` bytes of the output after the log's first `begin` bytes."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - most))
        return file.read().decode(errors="replace")


def last_line(log: Path, begin: int = 0) -> str:
    """Return ": " and the last line after the log's first `begin` bytes, to be appended to an
    error message; empty if there is none."""
    said = printed(log, begin, _LAST_BYTES) if log.exists() else ""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    return f": {plain(lines[-1])}" if lines else ""
