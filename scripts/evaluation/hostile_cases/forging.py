"""Changes to a certificate file, an npz archive of arrays with a JSON header."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Random = np.random.Generator
Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]
HEADER = "header"
FLOATS = (np.inf, -np.inf, np.nan, 1e38, 3.4e38, 1e-45, 1e-38, -1.0, 0.0, -0.0, 1e300, 5e-324)
WHOLE = (-1, 0, 1, 2, 7, 255, -128, 2**31 - 1, -(2**31))


def unpack(data: bytes) -> Arrays:
    with np.load(io.BytesIO(data)) as archive:
        return {name: archive[name] for name in archive.files}


def pack(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def stamped(arrays: Arrays, old: tuple[str, str], new: tuple[str, str]) -> Arrays:
    """The arrays, with the hashes in the header replaced by those of other files."""
    text = arrays[HEADER].tobytes().decode()
    for before, after in zip(old, new, strict=True):
        text = text.replace(before, after)
    return arrays | {HEADER: np.frombuffer(text.encode(), np.uint8)}


def forged(random: Random, arrays: Arrays) -> bytes:
    """Make a few changes to arrays or header, then possibly damage the bytes of the file."""
    arrays = dict(arrays)
    with np.errstate(all="ignore"):
        for _ in range(int(random.choice([0, 0, 1, 1, 2, 4]))):
            change = CHANGES[int(random.integers(len(CHANGES)))]
            change(random, arrays)
        data = pack(arrays)
    if random.random() < 0.08:
        return _damaged(random, data)
    return _oversized(random, arrays) if random.random() < 0.03 else data


def _pick(random: Random, arrays: Arrays) -> str:
    """The name of an array, usually one of real numbers."""
    real = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]
    if real and random.random() < 0.6:
        return str(random.choice(real))
    return str(random.choice([name for name in arrays if name != HEADER] or [HEADER]))


def _entries(random: Random, arrays: Arrays) -> None:
    """Set one entry, or all of an array, to an unlikely number."""
    name = _pick(random, arrays)
    array = arrays[name].copy()
    value = random.choice(FLOATS if array.dtype.kind == "f" else WHOLE)
    if array.size and random.random() < 0.5:
        array.reshape(-1)[int(random.integers(array.size))] = np.array(value).astype(array.dtype)
    else:
        array[...] = np.array(value).astype(array.dtype)
    arrays[name] = array


def _scaled(random: Random, arrays: Arrays) -> None:
    name = _pick(random, arrays)
    array = arrays[name]
    if array.dtype.kind == "f":
        arrays[name] = (array * 10.0 ** random.uniform(-50, 50)).astype(array.dtype)


def _shorter(random: Random, arrays: Arrays) -> None:
    name = _pick(random, arrays)
    arrays[name] = arrays[name][: int(random.integers(len(arrays[name]) + 1))]


def _longer(random: Random, arrays: Arrays) -> None:
    name = _pick(random, arrays)
    arrays[name] = np.concatenate([arrays[name], arrays[name]])


def _another_type(random: Random, arrays: Arrays) -> None:
    name = _pick(random, arrays)
    types = ["float64", "float16", "int8", "uint64", "complex64", "bool", "<U4", ">f4"]
    arrays[name] = arrays[name].astype(str(random.choice(types)))


def _another_shape(random: Random, arrays: Arrays) -> None:
    name = _pick(random, arrays)
    shape = (1, *arrays[name].shape) if random.random() < 0.5 else (-1,)
    arrays[name] = arrays[name].reshape(shape)


def _missing(random: Random, arrays: Arrays) -> None:
    arrays.pop(_pick(random, arrays))


def _another_header(random: Random, arrays: Arrays) -> None:
    """Change a value in the header, or drop or repeat a step."""
    header = json.loads(arrays.get(HEADER, np.zeros(0, np.uint8)).tobytes() or b"{}")
    steps = [value for value in header.values() if isinstance(value, list) and value]
    if steps and random.random() < 0.4:
        steps[0].pop() if random.random() < 0.5 else steps[0].append(steps[0][0])
    else:
        part = steps[0][0] if steps and random.random() < 0.7 else header
        if isinstance(part, dict) and part:
            name = str(random.choice(list(part)))
            part[name] = [-1, 0, 1, 10**30, 1.5, None, "close", [], {}, True][random.integers(10)]
    arrays[HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)


CHANGES: list[Callable[[Random, Arrays], None]] = [
    *[_entries] * 6, *[_scaled] * 6, _shorter, _longer, _another_type, _another_shape, _missing,
    _another_header,
]  # fmt: skip


def _damaged(random: Random, data: bytes) -> bytes:
    """Flip bits, or cut off the end."""
    if random.random() < 0.3:
        return data[: int(random.integers(len(data)))]
    flipped = bytearray(data)
    for position in random.integers(len(data), size=int(random.choice([1, 3, 30]))):
        flipped[int(position)] ^= 1 << int(random.integers(8))
    return bytes(flipped)


def _oversized(random: Random, arrays: Arrays) -> bytes:
    """Replace an array by one that claims a hundred billion entries and holds hardly any."""
    name, buffer = _pick(random, arrays), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{other}.npy", content.getvalue() if other != name else _huge())
    return buffer.getvalue()


def _huge() -> bytes:
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000,), }"
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(1 << 16)
