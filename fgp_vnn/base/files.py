"""Files as bytes: plain or gzip, with a size limit, and every failure reported in one line."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line, os_reason

MAX_BYTES = 1 << 30  # after decompression: a small .gz can unpack to any size
_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: Path, what: str, *, most: int | None = None) -> bytes:
    """Read a file, unpacked if it is gzip; `what` names its role in an error message.

    Content of more than `most` bytes is refused while reading. If the file does not exist, the same
    name with .gz is read instead.
    """
    check_readable(path, what)
    path = beside(path)
    with _reading(path, what):
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP_MAGIC
        if path.suffix == ".gz" and not packed:
            raise InputError(f"{what} {path} is named .gz, but it is not a gzip file")
        return _read_all(path, packed, what, MAX_BYTES if most is None else most)


def check_readable(path: Path, what: str) -> None:
    """Refuse, before the work begins, a path that is not a regular file."""
    path = beside(path)
    with _reading(path, what):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{what} {path} is a directory")
        if not stat.S_ISREG(mode):  # a pipe or a device may never end
            raise InputError(f"{what} {path} is not a regular file")


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn any error while reading a file into an InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{what} {path} does not exist") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{what} {path} is a broken gzip file: {one_line(error)}") from None
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {os_reason(error)}") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{what} {str(path)!r} is not a path: {one_line(error)}") from None


def beside(path: Path) -> Path:
    """The path, or the same path with .gz appended if only that file exists."""
    try:
        packed = path.with_name(path.name + ".gz")
        return packed if not path.exists() and packed.is_file() else path
    except (OSError, ValueError):  # an empty or invalid name
        return path


def check_writable(path: Path, what: str, read: Iterable[Path] = ()) -> None:
    """Refuse, before the work begins, an output path that cannot be written or that would replace
    an input file."""
    try:
        target = path.resolve()
        if any(_is(target, beside(file)) for file in read):
            raise InputError(f"{what} {path} would be written over a file that is read")
        if target.is_dir():
            raise InputError(f"{what} {path} is a directory")
        if not target.parent.is_dir():
            raise InputError(f"{what} {path}: the folder {path.parent} does not exist")
        if not target.exists() or target.is_file():  # written by renaming a file in its folder
            if not os.access(target.parent, os.W_OK):
                raise InputError(f"{what} {path}: the folder {path.parent} is not writable")
        elif not os.access(target, os.W_OK):
            raise InputError(f"{what} {path} is not writable")
        path.stat()  # a loop of links is found here
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:  # a name that is too long, a loop of links
        raise InputError(f"{what} {path} cannot be written: {os_reason(error)}") from None


def _is(target: Path, file: Path) -> bool:
    """Return whether the path names the same existing file as the target."""
    try:
        return target.exists() and file.exists() and target.samefile(file)
    except (OSError, ValueError, RuntimeError):
        return False


def write_bytes(path: str | Path, data: bytes, what: str) -> None:
    """Write a file atomically: a reader finds the old content or all of the new."""
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)  # devices such as /dev/stdout cannot be replaced
            return
        _replace(target, data)
    except (OSError, ValueError, RuntimeError) as error:  # also a zero byte, a loop of links
        raise InputError(f"{what} {path} cannot be written: {os_reason(error)}") from None


@contextmanager
def writing() -> Iterator[None]:
    """Turn an OSError into an InputError that names the file that cannot be written, if the system
    names one (for a full disk it does not)."""
    try:
        yield
    except OSError as error:
        what = "the output" if error.filename is None else f"{error.filename}:"
        raise InputError(f"{what} cannot be written: {os_reason(error)}") from error


def lock(file: IO[str]) -> None:
    """Lock a file until it is closed; raises OSError if another process has locked it. On Windows,
    which has no such locks, this does nothing."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target, then rename over it."""
    if target.is_dir():
        raise IsADirectoryError(21, "it is a directory")
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _read_all(path: Path, packed: bool, what: str, most: int) -> bytes:
    content = io.BytesIO()  # `getvalue` does not copy
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            content.write(chunk)
            if content.tell() > most:
                unpacked = " when unpacked" if packed else ""
                raise UnsupportedError(f"{what} {path} is larger than {most:,} bytes{unpacked}")
    return content.getvalue()


def cut_unfinished_line(path: Path) -> None:
    """Remove an incomplete last line from a file, if the file exists."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
