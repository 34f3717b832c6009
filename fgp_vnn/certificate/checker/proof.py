"""The file format of a certificate: an npz archive of plain arrays, described by a JSON header.

Version 1. The header names the format, its version, the SHA-256 of both files (decompressed, with
external weights embedded in the network) and the steps of the proof in order. Step i has the arrays
"i.name":

lemma  (case, layer)  bounds of neurons of a layer: `neurons` [rows], `sides` [rows] +1 for a lower
       bound of z and -1 for one of -z; a tree over the neurons of earlier layers for each row
close  (case)  disjuncts that cannot be met: `disjuncts` [rows], a tree over all neurons for each,
       `weights` [leaves, rows of all disjuncts of the case] of the sum that is bounded
boxes  (case)  disjuncts that cannot be met, by a tree over the inputs: `disjuncts`, `tree`, `cuts`,
       `weights` [leaves, rows of all disjuncts of the case]

A tree over neurons has `tree` (preorder, see trees.py), `columns` [m] the neurons for which slopes
are given, `slopes` [leaves, m] in 1/255, and `multipliers` [assumptions], leaf by leaf and for each
leaf from the root down. Neurons are numbered consecutively through all layers. This module reads
the format; `certificate/write.py` writes it.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line

FORMAT = "fgp-vnn certificate"
VERSION = 1
MOST_BYTES = 1 << 30  # of all arrays, decompressed
FEW_LEAVES, LEAVES_PER_BYTE = 20_000, 4  # ten measured proofs have up to 0.15 leaves per byte
MOST_HEADER = 1 << 23  # bytes; a step takes about fifty
MOST_ARRAYS = 500_000

_ENTRY = b"PK\x01\x02"  # first bytes of each entry in a zip archive's directory

_TREE = {"tree": ("int32", 1), "columns": ("int32", 1), "slopes": ("uint8", 2)}
_TREE |= {"multipliers": ("float32", 1)}
_CLOSED = {"disjuncts": ("int32", 1), "weights": ("float32", 2)}
ARRAYS: dict[str, dict[str, tuple[str, int]]] = {
    "lemma": {"neurons": ("int32", 1), "sides": ("int8", 1), **_TREE},
    "close": {**_CLOSED, **_TREE},
    "boxes": {**_CLOSED, "tree": ("int32", 1), "cuts": ("float64", 1)},
}


@dataclass(frozen=True, eq=False)
class ProofStep:
    """One step of a proof; its kind determines its arrays and their meaning."""

    kind: str
    case: int
    arrays: dict[str, NDArray[Any]]
    layer: int = -1  # of a lemma


@dataclass(frozen=True, eq=False)
class Certificate:
    """The claim of a file: that these steps prove `unsat` for the files with these hashes."""

    network: str  # SHA-256, in hexadecimal digits
    property: str
    steps: tuple[ProofStep, ...]


def read_certificate(data: bytes) -> Certificate:
    """Read a certificate from the content of its file; raises InputError for any defect."""
    try:
        arrays = _unpack(data)
    except InputError:
        raise
    except Exception as error:  # raised by zipfile, zlib and numpy on damaged content
        raise InputError(f"the file is damaged or no certificate ({one_line(error)})") from None
    header = _header(arrays.pop("header", None))
    steps = [_step(i, described, arrays) for i, described in enumerate(header["steps"])]
    if arrays:
        raise InputError(f"array {min(arrays)!r} belongs to no step")
    _limit_work(steps, len(data))
    return Certificate(header["network"], header["property"], tuple(steps))


def _limit_work(steps: Sequence[ProofStep], size: int) -> None:
    """Refuse a certificate with too many leaves for its size in bytes. Each leaf is a bound to
    compute, so a small but highly compressed file could keep the checker busy for hours."""
    leaves = sum(int((step.arrays["tree"] < 0).sum()) for step in steps)
    if leaves > max(FEW_LEAVES, LEAVES_PER_BYTE * size):
        raise UnsupportedError(f"{leaves:,} leaves are too many for a file of {size:,} bytes")


def _unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """All arrays of an archive; refuses pickled and duplicate arrays.

    Sizes are checked before anything is decompressed, and no entry is read beyond its stated size.
    """
    if data.count(_ENTRY) > MOST_ARRAYS:
        raise UnsupportedError(f"the certificate holds more than {MOST_ARRAYS:,} arrays")
    result: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MOST_BYTES:
            raise UnsupportedError(f"the certificate unpacks to more than {MOST_BYTES:,} bytes")
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name in result or name == entry.filename:
                raise InputError(f"the certificate holds {entry.filename!r} twice, or as no array")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(f"array {name!r} is compressed by an unknown method")
            with archive.open(entry) as file:
                result[name] = _array(file.read(entry.file_size), name)  # read() may unpack more
    return result


def _array(content: bytes, name: str) -> NDArray[Any]:
    """Parse an array of plain numbers; refuses one whose size differs from its header's."""
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise InputError(f"array {name!r} has an unknown version")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject or dtype.itemsize * prod(shape) != len(content) - file.tell():
        raise InputError(f"array {name!r} does not hold plain numbers, or has the wrong size")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if by_columns else "C")


def _header(array: NDArray[Any] | None) -> dict[str, Any]:
    if array is None or array.dtype != np.uint8 or array.ndim != 1:
        raise InputError("the file is no certificate: it has no header")
    if len(array) > MOST_HEADER:
        raise UnsupportedError(f"the certificate's header is larger than {MOST_HEADER:,} bytes")
    try:
        header = json.loads(array.tobytes())
    except (ValueError, RecursionError):
        raise InputError("the certificate's header is damaged") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError("the file is no certificate of this format")
    if header.get("version") != VERSION:
        raise InputError(f"version {header.get('version')!r} is not known; this is {VERSION}")
    wanted = {"result": str, "network": str, "property": str, "steps": list}
    if any(not isinstance(header.get(name), kind) for name, kind in wanted.items()):
        raise InputError("the certificate's header is incomplete")
    if header["result"] != "unsat":
        raise InputError(f"it claims {header['result'][:40]!r}; only unsat is proved this way")
    return header


def _step(index: int, described: Any, arrays: dict[str, NDArray[Any]]) -> ProofStep:
    """A step with all its arrays, whose types are checked; removes them from `arrays`."""
    kind = described.get("kind") if isinstance(described, dict) else None
    if not isinstance(kind, str) or kind not in ARRAYS:
        raise InputError(f"step {index} is of an unknown kind")
    case, layer = described.get("case"), described.get("layer")
    if type(case) is not int or type(layer) is not int:
        raise InputError(f"step {index} does not say what it is about")
    found = {}
    for name, (dtype, dimensions) in ARRAYS[kind].items():
        array = arrays.pop(f"{index}.{name}", None)
        if array is None or array.dtype != np.dtype(dtype) or array.ndim != dimensions:
            raise InputError(f"step {index}: {name} is missing or not {dtype} [{dimensions}]")
        found[name] = array
    return ProofStep(kind, case, found, layer)
