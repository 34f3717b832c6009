from __future__ import annotations

from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.compare import read_published
from fgp_vnn.bench.tables import file_name, instance_key, read_rows, result_word


@pytest.mark.parametrize(
    "name",
    [
        "onnx/a.onnx",
        "./onnx/a.onnx",
        "onnx/a.onnx.gz",
        "./benchmarks/mnist_fc/onnx/a.onnx",
        "/somewhere/mnist_fc/1.0/onnx/a.onnx.gz",
        "mnist_fc/onnx//a.onnx",
    ],
)
def test_an_instance_is_the_same_however_its_path_is_spelled(name: str) -> None:
    assert instance_key("mnist_fc", name, "p") == ("mnist_fc", "onnx/a.onnx", "p")


def test_different_folders_stay_different_instances() -> None:
    assert instance_key("c", "a/net.onnx", "p") != instance_key("c", "b/net.onnx", "p")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("sat", "sat"),
        (" UNSAT ", "unsat"),
        ("violated", "sat"),
        ("holds", "unsat"),
        ("unknown", "unknown"),
        ("run_instance_timeout", "timeout"),
        ("error_exit_code_1", "error"),
        ("no_result_in_file", "error"),
        ("", "error"),
    ],
)
def test_every_word_of_a_published_table_becomes_one_of_five(text: str, word: str) -> None:
    assert result_word(text) == word


def test_rows_keep_their_line_numbers_over_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf a ,"b,c"\r\n\r\n,,\r\nd,e\r\n')
    assert read_rows(path) == [(1, ["a", "b,c"]), (4, ["d", "e"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"c,o,v,1,sat\n", r"t.csv:1: expected category,onnx"),
        (b"c,o,v,soon,sat,1\n", r"t.csv:1: expected category,onnx"),
        (b"onnx,vnnlib,result\no,v,sat\n", r"t.csv:2: expected category,onnx"),
        (b"\n", "no rows"),
        (b"\xff\xfe", "not UTF-8"),
        (b'c,o,"v\n', "not csv"),
    ],
)
def test_a_bad_results_table_is_refused_with_its_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_published(path)


def test_a_missing_results_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_published(tmp_path / "no.csv")


def test_times_without_a_leading_zero_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("c,o,v,.005,unsat,18.1\n")
    (answer,) = read_published(path).values()
    assert (answer.prepare_time, answer.status, answer.run_time) == (0.005, "unsat", 18.1)


def test_all_published_tables_are_read(shared_data: Path) -> None:
    paths = sorted((shared_data / "published").glob("*.csv"))
    assert paths
    assert all(len(read_published(path)) > 100 for path in paths)


def test_files_are_named_after_their_instance_and_no_two_alike() -> None:
    keys = [
        ("cat", "onnx/a.onnx", "vnnlib/p 1.vnnlib"),
        ("cat", "onnx/a.onnx", "vnnlib/p_1.vnnlib"),
    ]
    names = [file_name(key) for key in keys]
    assert len(set(names)) == 2
    assert all(name.startswith("cat-a-p_1-") and "/" not in name for name in names)
    assert len(file_name(("cat", "a" * 300, "b" * 300))) < 200
