"""The file of a certificate: an npz archive of plain arrays, described by a header in JSON.

Version 1. The header names the format, its version, the SHA-256 of both files (unpacked, weights
that lie beside the network put into it) and the steps of the proof in order. Step i has the arrays
"i.name":

lemma  (case, layer)  bounds of neurons of a layer: `neurons` [rows], `sides` [rows] +1 for a lower
       bound of z and -1 for one of -z; a tree over the neurons of earlier layers for each row
close  (case)  disjuncts that cannot be met: `disjuncts` [rows], a tree over all neurons for each,
       `weights` [leaves, most rows] of the disjunct's rows in the sum that is bounded
boxes  (case)  disjuncts that cannot be met, by a tree over the inputs: `disjuncts`, `tree`, `cuts`,
       `weights` [leaves, rows of all these disjuncts]

A tree over neurons has `tree` (preorder, see trees.py), `columns` [m] the neurons for which slopes
are given, `slopes` [leaves, m] in 1/255, and `multipliers` [assumptions], leaf by leaf in the
order of their paths. Neurons are numbered through all layers. It is read here and written by
`certificate/write.py`.
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
MOST_BYTES = 1 << 30  # of all arrays, unpacked
FEW_LEAVES, LEAVES_PER_BYTE = 20_000, 4  # ten proofs that were measured have up to 0.15 a byte
MOST_HEADER = 1 << 23  # bytes; a step takes some fifty
MOST_ARRAYS = 500_000

_ENTRY = b"PK\x01\x02"  # what the description of an archive's entry begins with

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
    """One step of a proof; what its arrays mean depends on its kind."""

    kind: str
    case: int
    arrays: dict[str, NDArray[Any]]
    layer: int = -1  # of a lemma


@dataclass(frozen=True, eq=False)
class Certificate:
    """What a file claims: that these steps prove `unsat` for the files with these hashes."""

    network: str  # SHA-256, in hexadecimal digits
    property: str
    steps: tuple[ProofStep, ...]


def read_certificate(data: bytes) -> Certificate:
    """A certificate from the content of its file; what is wrong with it is an InputError."""
    try:
        arrays = _unpack(data)
    except InputError:
        raise
    except Exception as error:  # whatever zipfile, zlib and numpy raise on damaged content
        raise InputError(f"the file is damaged or no certificate ({one_line(error)})") from None
    header = _header(arrays.pop("header", None))
    steps = [_step(i, described, arrays) for i, described in enumerate(header["steps"])]
    if arrays:
        raise InputError(f"array {min(arrays)!r} belongs to no step")
    _limit_work(steps, len(data))
    return Certificate(header["network"], header["property"], tuple(steps))


def _limit_work(steps: Sequence[ProofStep], size: int) -> None:
    """Refuse more leaves, each a bound to be computed, than a file of so many bytes can say
    anything of: a little that is packed many times over could be checked for hours."""
    leaves = sum(int((step.arrays["tree"] < 0).sum()) for step in steps)
    if leaves > max(FEW_LEAVES, LEAVES_PER_BYTE * size):
        raise UnsupportedError(f"{leaves:,} leaves in {size:,} bytes are more than can be honest")


def _unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """All arrays of an archive, none of them pickled, none of them twice.

    Sizes are looked at before anything is unpacked; an entry gives no more bytes than it says.
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
                raise InputError(f"array {name!r} is packed in a way that is not known here")
            with archive.open(entry) as file:
                result[name] = _array(file.read(entry.file_size), name)  # read() may unpack more
    return result


def _array(content: bytes, name: str) -> NDArray[Any]:
    """An array of plain numbers; it has as many bytes as its description says, or is refused."""
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise InputError(f"array {name!r} is of a version that is not known here")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject or dtype.itemsize * prod(shape) != len(content) - file.tell():
        raise InputError(f"array {name!r} is no array of plain numbers, or not of its size")
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
    """A step with all its arrays, of the right types."""
    kind = described.get("kind") if isinstance(described, dict) else None
    if not isinstance(kind, str) or kind not in ARRAYS:
        raise InputError(f"step {index} is of no known kind")
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
