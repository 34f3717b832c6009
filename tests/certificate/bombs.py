"""Small certificates that ask for much memory, given to the checker: run as a program.

Prints a JSON object of name -> what the checker says. Its own process, with a limit on memory.
"""

from __future__ import annotations

import io
import json
import resource
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import check
from fgp_vnn.certificate.checker.network import AffineMap, CheckedNetwork
from fgp_vnn.certificate.checker.proof import Certificate, ProofStep, read_certificate
from fgp_vnn.certificate.write import write_certificate
from fgp_vnn.property import Case, Conjunction, Property

LIMIT = 4 << 30
INPUTS, NEURONS = 3000, 6000


def _map(weights: dict[int, Any], bias: Any) -> AffineMap:
    sizes = {s: np.abs(w) for s, w in weights.items()}
    return AffineMap(weights, bias, sizes, np.abs(bias), 0)


def instance() -> tuple[CheckedNetwork, Property]:
    """One wide layer, of which little is read, and three ways to break the property."""
    sparse = np.zeros((NEURONS, INPUTS), dtype=np.float64)
    sparse[:, 0] = 1
    maps = _map({0: sparse}, np.zeros(NEURONS)), _map({1: np.ones((1, NEURONS))}, np.zeros(1))
    row = Conjunction(np.ones((1, 1)), np.zeros(1), np.zeros(1, dtype=bool))
    case = Case(-np.ones(INPUTS), np.ones(INPUTS), (row, row, row))
    return CheckedNetwork(maps, INPUTS), Property((case,), INPUTS, 1)


def step(kind: str, layer: int = -1, **arrays: Any) -> bytes:
    none: dict[str, Any] = {"columns": [], "multipliers": [], "cuts": [], "weights": [[]]}
    none |= {"disjuncts": [0], "tree": [-1], "slopes": [[]]}
    given = {name: np.asarray(array) for name, array in (none | arrays).items()}
    return write_certificate(Certificate("", "", (ProofStep(kind, 0, given, layer),)))


def archive(name: str, content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as written:
        written.writestr(name, content)
    return file.getvalue()


def zeros(count: int) -> bytes:
    """An archive with so many zeros, and 128 bytes before them: packed once, and repeated."""
    start, part = npy(np.zeros(1 << 20, np.uint8), f"({count},)")[:128], bytes(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    repeated = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    data += repeated * (count >> 20) + packer.compress(bytes(count % (1 << 20))) + packer.flush()
    check = zlib.crc32(start)
    for _ in range(count >> 20):
        check = zlib.crc32(part, check)
    check = zlib.crc32(bytes(count % (1 << 20)), check)
    stored = archive("header.npy", data, zipfile.ZIP_STORED)
    sizes = struct.pack("<III", zlib.crc32(data), len(data), len(data))
    packed = struct.pack("<III", check, len(data), count + len(start))
    for place, method in ((stored.find(b"PK\x03\x04"), 8), (stored.rfind(b"PK\x01\x02"), 10)):
        at = stored.index(sizes, place)
        stored = (
            stored[: place + method]
            + b"\x08\0"
            + stored[place + method + 2 : at]
            + packed
            + stored[at + 12 :]
        )
    return stored


def npy(array: Any, shape: str = "") -> bytes:
    """An array as bytes, perhaps with another shape in its description."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array))
    data = file.getvalue()
    if not shape:
        return data
    size = int.from_bytes(data[8:10], "little")
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return data[:10] + text.ljust(size - 1) + b"\n" + data[10 + size :]


def header(text: bytes) -> bytes:
    return archive("header.npy", npy(np.frombuffer(text, np.uint8)))


def chain(numbers: range) -> list[int]:
    """A tree as deep as can be."""
    return [node for number in numbers for node in (number, -1)] + [-1]


BOMBS: dict[str, Callable[[], bytes]] = {
    "a shape of a terabyte": lambda: archive("header.npy", npy([1], "(10**12,)")),
    "a shape of 2^40": lambda: archive("header.npy", npy([1], "(1099511627776,)")),
    "unpacks to much": lambda: zeros((1 << 30) + 1),
    "packed by lzma": lambda: archive("header.npy", npy([1]), zipfile.ZIP_LZMA),
    "a long header": lambda: header(b" " * (9 << 20)),
    "a deep header": lambda: header(b"[" * 1_000_000),
    "a long number": lambda: header(b'{"format": ' + b"9" * 1_000_000 + b"}"),
    "one disjunct many times": lambda: step(
        "boxes", disjuncts=np.zeros(5_000_000), weights=np.ones((1, 3))
    ),
    "one neuron many times": lambda: step(
        "lemma",
        0,
        neurons=np.zeros(2_000_000),
        sides=np.ones(2_000_000),
        tree=np.full(2_000_000, -1),
        slopes=np.zeros((2_000_000, 1)),
        weights=[],
    ),
    "deep trees": lambda: step(
        "close",
        disjuncts=[0, 1, 2],
        tree=chain(range(NEURONS)) * 3,
        weights=np.ones((3 * (NEURONS + 1), 3)),
        slopes=np.zeros((3 * (NEURONS + 1), 0)),
    ),
    "a deep tree that ends early": lambda: step("close", tree=np.arange(NEURONS)),
    "many columns": lambda: step(
        "close",
        columns=np.zeros(1_000_000),
        slopes=np.zeros((1, 1_000_000)),
        weights=np.ones((1, 3)),
    ),
    "many large boxes": lambda: step(
        "boxes",
        tree=chain(range(INPUTS)) + [-1] * 100_000,
        cuts=np.zeros(INPUTS),
        weights=np.ones((INPUTS + 100_001, 3)),
    ),
    "many nodes": lambda: step("close", tree=np.zeros(30_000_000, np.int32)),
}


def main() -> None:
    network, prop = instance()
    made = {name: bomb() for name, bomb in BOMBS.items()}
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    said = {}
    for name, data in made.items():
        try:
            check(read_certificate(data), network, prop)
            said[name] = "accepted"
        except InputError as error:
            said[name] = f"refused: {error}"
        except BaseException as error:
            said[name] = f"{type(error).__name__}: {error}"[:200]
    json.dump({"largest": max(map(len, made.values())), **said}, sys.stdout)


if __name__ == "__main__":
    main()
