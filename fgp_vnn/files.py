"""Reading files that may be gzipped, with errors that name the file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from fgp_vnn.errors import InputError


def read_bytes(path: Path, what: str) -> bytes:
    """The content of a plain or gzipped file; `what` names it in errors."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot read the {what}: {reason}") from error
