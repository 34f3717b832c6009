"""The order of the files on a command line, checked by their names and their first bytes."""

from __future__ import annotations

import gzip
import shlex
import zlib
from collections.abc import Sequence
from pathlib import Path

from fgp_vnn.base.errors import InputError

_SUFFIXES = {".onnx": "network", ".vnnlib": "property", ".npz": "certificate"}
_FIRST = 100  # bytes that are read of a file whose name does not say what it is


def check_order(command: str, wanted: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse files that are given in another order than the `wanted` kinds; the message has the
    right one. A file whose kind is not known stands for the one kind that is missing."""
    kinds = [kind if (kind := _kind(path)) in wanted else "" for path in paths]
    missing = [kind for kind in wanted if kind not in kinds]
    if len(missing) == 1 and kinds.count("") == 1:
        kinds[kinds.index("")] = missing[0]
    if kinds == list(wanted) or sorted(kinds) != sorted(wanted):
        return
    right = shlex.join(str(paths[kinds.index(kind)]) for kind in wanted)
    raise InputError(f"the files are in the wrong order; use: fgp-vnn {command} {right}")


def _kind(path: Path) -> str:
    """The kind of a file, from its name or else from its first bytes; empty if neither tells."""
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    first = _first_bytes(path).lstrip()
    if first.startswith(b"PK"):
        return "certificate"
    if first.startswith((b"(", b";")):
        return "property"
    from fgp_vnn.base.verdict import STATUSES  # it imports numpy, which --help does without

    words = first.split(maxsplit=1)
    return "results" if words and words[0].decode("latin-1") in STATUSES else ""


def _first_bytes(path: Path) -> bytes:
    """The first bytes of a file, unpacked if it is gzip; empty if it cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            first = file.read(_FIRST)
        if not first.startswith(b"\x1f\x8b"):
            return first
        with gzip.open(path) as unpacked:
            return unpacked.read(_FIRST)
    except (OSError, ValueError, EOFError, zlib.error):
        return b""
