"""ONNX files read as one piece: weights stored in separate files are put into the model.

A tensor names the file and the part of it that holds its values. The file must lie in the network's
folder or below it, after links are resolved, and the part must have exactly the tensor's size.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from math import prod
from pathlib import Path, PureWindowsPath
from typing import Any

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line
from fgp_vnn.base.files import MAX_BYTES, check_readable, read_bytes

_MARK = b"location"  # occurs in every file that refers to a tensor in another file
_WIDTHS = {
    "FLOAT": 4, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "INT32": 4, "INT64": 8, "BOOL": 1,
    "FLOAT16": 2, "DOUBLE": 8, "UINT32": 4, "UINT64": 8, "BFLOAT16": 2,
}  # fmt: skip


def read_model(path: Path) -> bytes:
    """Read an ONNX file, plain or gzipped, with weights from other files put into it.

    The bytes of a file that is not ONNX are returned unchanged. Raises only InputError.
    """
    check_model(path)
    data = read_bytes(path, "network")
    if _MARK not in data:
        return data
    try:
        model = parse_model(data)
    except InputError:
        return data
    found = external_tensors(model)
    if not found:
        return data
    weights = _Weights(path.parent, MAX_BYTES - len(data))
    for tensor in found:
        try:
            raw = weights.read(tensor)
        except InputError as error:
            raise type(error)(f"network {path}: the weights of {tensor.name!r}: {error}") from None
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        tensor.raw_data = raw
    whole: bytes = model.SerializeToString(deterministic=True)
    return whole


def check_model(path: Path) -> None:
    """Refuse a path that is not a file, or a list of networks where one network is needed."""
    if str(path).startswith("[") and not path.exists():
        raise InputError(f"one network is needed; only verify and supports take {path}")
    check_readable(path, "network")


def parse_model(data: bytes) -> Any:
    """Parse the bytes of an ONNX file; raises InputError for other bytes."""
    import onnx

    try:
        return onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's DecodeError, whose module differs between versions
        if data.startswith((b"PK\x03\x04", b"\x80")):  # a zip archive, a pickle
            raise InputError(
                "not an ONNX file, but an archive or a pickle: a model of torch is written with "
                "torch.onnx.export, not with torch.save"
            ) from error
        raise InputError("not an ONNX file, or a truncated one") from error


def external_tensors(model: Any) -> list[Any]:
    """All tensors anywhere in a model whose values are in other files."""
    return [tensor for tensor in _tensors(model) if tensor.data_location == tensor.EXTERNAL]


def _tensors(message: Any) -> Iterator[Any]:
    """All tensors in a protobuf message and in the messages nested in it."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        if current.DESCRIPTOR.full_name == "onnx.TensorProto":
            yield current
            continue
        for field, value in current.ListFields():
            if field.message_type is not None:
                waiting += [value] if hasattr(value, "ListFields") else reversed(value)


class _Weights:
    """Reads tensors from the files of a folder."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._left = most  # bytes that may still be read
        self._unpacked: dict[Path, bytes] = {}

    def read(self, tensor: Any) -> bytes:
        """The bytes of a tensor; raises InputError, to which the caller adds the tensor's name."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        size = _size(tensor)
        offset = _number(entries.get("offset", "0"), "offset")
        length = _number(entries.get("length", str(size)), "length")
        if length != size:
            raise InputError(f"they have {length} bytes, but the tensor takes {size}")
        self._left -= size
        if self._left < 0:
            raise UnsupportedError(f"with them the network is larger than {MAX_BYTES:,} bytes")
        location = entries.get("location", "")
        path = self._find(location)
        try:
            raw = self._part(path, offset, size)
        except OSError as error:
            raise InputError(f"{location!r} cannot be read: {error.strerror}") from None
        if len(raw) != size:
            raise InputError(f"{location!r} ends before byte {offset + size}")
        return raw

    def _part(self, path: Path, offset: int, size: int) -> bytes:
        """Up to `size` bytes of a file from `offset`, after unpacking if it is named .gz."""
        if path.suffix == ".gz":
            if path not in self._unpacked:
                self._unpacked[path] = read_bytes(path, "file")
            return self._unpacked[path][offset : offset + size]
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < offset + size:
                return b""
            file.seek(offset)
            return file.read(size)

    def _find(self, location: str) -> Path:
        """The path of a file, plain or gzipped; raises InputError if it is outside the folder."""
        parts = PureWindowsPath(location)  # understands both kinds of separators
        if parts.anchor or ".." in parts.parts or not parts.parts:
            raise InputError(f"{location!r} does not name a file in the network's folder")
        for name in (location, f"{location}.gz"):
            path = self._folder / name
            try:
                real = path.resolve(strict=True)
                regular = stat.S_ISREG(real.stat().st_mode)  # a pipe may never end
            except FileNotFoundError:
                continue
            except (OSError, ValueError, RuntimeError) as error:  # a zero byte, a loop of links
                raise InputError(f"{location!r} cannot be read: {one_line(error)}") from None
            if not real.is_relative_to(self._folder.resolve()):
                raise InputError(f"{location!r} is a link out of the network's folder")
            if not regular:
                raise InputError(f"{location!r} is not a regular file")
            return path
        raise InputError(f"{location!r} is not in the network's folder")


def _size(tensor: Any) -> int:
    kind = tensor.DataType.Name(tensor.data_type)
    if kind not in _WIDTHS:
        raise UnsupportedError(f"values of type {kind} in a separate file are not supported")
    if any(size < 0 for size in tensor.dims):
        raise InputError("the tensor has a negative dimension")
    return int(prod(tensor.dims)) * _WIDTHS[kind]


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError(f"their {what} is {text!r}, which is not a number of bytes")
    return int(text)
