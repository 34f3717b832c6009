from __future__ import annotations

from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.tables import read_truth


def test_only_known_answers_are_kept(tmp_path: Path) -> None:
    (tmp_path / "ground_truth.csv").write_text(
        "onnx,vnnlib,timeout,result,agreeing_tools\n"
        "a.onnx,p,5,sat,x;y\nb.onnx,p,5,unknown,\nc.onnx,p,5,unsat,z\n"
    )
    assert read_truth([("cat", tmp_path)]) == {
        ("cat", "a.onnx", "p"): "sat",
        ("cat", "c.onnx", "p"): "unsat",
    }


def test_another_table_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "ground_truth.csv").write_text("onnx,vnnlib,result\na.onnx,p,sat\n")
    other = tmp_path / "other.csv"
    other.write_text("cat,./a.onnx.gz,p,0,unsat,1.0\n")
    assert read_truth([("cat", tmp_path)], other) == {("cat", "a.onnx", "p"): "unsat"}


def test_a_folder_without_a_table_knows_nothing(tmp_path: Path) -> None:
    assert read_truth([("cat", tmp_path)]) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows"),
        ("a,b\n", "other.csv:1: expected category,onnx,.*or a header with onnx"),
        ("onnx,vnnlib,result\na,b\n", "other.csv:2: expected onnx,vnnlib,result .*, got 'a,b'"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, content: str, message: str) -> None:
    other = tmp_path / "other.csv"
    other.write_text(content)
    with pytest.raises(InputError, match=message):
        read_truth([("cat", tmp_path)], other)
