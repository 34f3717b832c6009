"""Reading files: plain or gzip, and one line for every failure."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from fgp_vnn.base import files
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.files import read_bytes, writing
from fgp_vnn.property import load_property

CONTENT = bytes(range(256)) * 20


def message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_bytes(path, "network")
    assert str(caught.value).startswith("network ") and "\n" not in str(caught.value)
    return str(caught.value)


def test_plain_and_packed_files_give_the_same_bytes(tmp_path: Path) -> None:
    plain, packed, joined = (tmp_path / name for name in ("a.onnx", "a.onnx.gz", "b.onnx"))
    plain.write_bytes(CONTENT)
    packed.write_bytes(gzip.compress(CONTENT))
    joined.write_bytes(gzip.compress(CONTENT[:99]) + gzip.compress(CONTENT[99:]))
    assert {read_bytes(path, "network") for path in (plain, packed, joined)} == {CONTENT}


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    assert read_bytes(tmp_path / "a.onnx", "network") == b""


def test_missing_files_directories_and_bad_paths_are_named(tmp_path: Path) -> None:
    assert message(tmp_path / "absent") == f"network {tmp_path / 'absent'} does not exist"
    assert message(tmp_path) == f"network {tmp_path} is a directory"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    for path in (tmp_path / "loop", tmp_path / "file" / "a", tmp_path / ("a" * 300)):
        assert "cannot be read: " in message(path)
    assert "is not a path" in message(Path("a\0b"))


def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in message(tmp_path / "pipe")


def test_a_file_without_read_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(CONTENT)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "Permission denied" in message(path)


def test_broken_gzip_files_are_named(tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT, mtime=0)
    path = tmp_path / "bad.gz"
    damaged = packed[:30] + b"\xff" * 30
    for content in (packed[:40], packed[:5], packed[:-3], damaged, packed + b"x"):
        path.write_bytes(content)
        assert "broken gzip file" in message(path)
    path.write_bytes(CONTENT)
    assert "named .gz, but it is not" in message(path)


def test_reading_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 3_000_000)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bytes(50_000_000), 1))
    assert "larger than 3,000,000 bytes when unpacked" in message(path)
    path.write_bytes(bytes(3_000_001))
    assert message(path).endswith("is larger than 3,000,000 bytes")
    path.write_bytes(bytes(3_000_000))
    assert len(read_bytes(path, "network")) == 3_000_000


def test_a_gigabyte_in_a_small_property_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(20_000_000)) * 60)  # 1.2 GB when unpacked
    with pytest.raises(UnsupportedError, match="larger than 134,217,728 bytes when unpacked"):
        load_property(path, 512 << 20)


def test_an_error_of_writing_without_a_name_is_told_without_one() -> None:
    with pytest.raises(InputError, match=r"^the output cannot be written: "), writing():
        raise OSError(28, "No space left on device")
    with pytest.raises(InputError, match=r"^out\.csv: cannot be written: "), writing():
        raise OSError(28, "No space left on device", "out.csv")
