from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.check import OnnxFile, fault
from fgp_vnn.cli.main import main
from fgp_vnn.property import load_property
from tests.helpers.bench_folders import PROPERTY, identity


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The identity on the plane, broken where the first coordinate is at least the second."""
    network, prop = tmp_path / "net.onnx", tmp_path / "prop.vnnlib"
    network.write_bytes(identity())
    prop.write_text(PROPERTY)
    return network, prop


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([1.0, 0.0], ""),
        ([0.5, 0.5], ""),  # equality meets >=
        ([0.5, np.nextafter(np.float32(0.5), np.float32(1))], "is not unsafe"),
        (
            [1.0 + 2**-23, 0.0],
            "outside the box by 1.2e-07: X_0 = 1.0000001192092896 is not in [0, 1]",
        ),
        ([1.0, -1e-30], "by 1e-30: X_1 = -1.0000000031710769e-30 is not in [0, 1]"),
        ([1.0 + 2**-30, 0.0], ""),  # it is the float32 that counts
        ([float("nan"), 0.0], "X_0 is not a finite number"),
        ([0.0, 1e300], "X_1 is not a finite number"),
        ([1.0], "1 inputs, the property has 2"),
    ],
)
def test_a_point_is_judged_in_float32_with_no_tolerance(
    files: tuple[Path, Path], point: list[float], message: str
) -> None:
    found = fault(np.array(point), OnnxFile(files[0]), load_property(files[1]))
    assert message in found
    assert bool(message) == bool(found)


def test_a_point_has_to_be_unsafe_in_a_box_that_contains_it(tmp_path: Path) -> None:
    """Each box has its own unsafe set: what is unsafe in the one says nothing in the other."""
    network, prop = tmp_path / "net.onnx", tmp_path / "prop.vnnlib"
    network.write_bytes(identity(1))
    prop.write_text(
        "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n"
        "(assert (or (and (>= X_0 0.0) (<= X_0 1.0) (>= Y_0 0.5))"
        " (and (>= X_0 2.0) (<= X_0 3.0) (<= Y_0 0.0))))\n"
    )
    onnx, loaded = OnnxFile(network), load_property(prop)
    assert fault(np.array([0.75]), onnx, loaded) == ""
    assert "is not unsafe" in fault(np.array([2.5]), onnx, loaded)
    assert "outside the box by 0.5" in fault(np.array([1.5]), onnx, loaded)


def test_dimensions_without_a_number_are_one(tmp_path: Path) -> None:
    network = tmp_path / "net.onnx.gz"
    network.write_bytes(gzip.compress(identity(4, ["batch", 2, 2])))
    onnx = OnnxFile(network)
    assert onnx.shape == (1, 2, 2)
    assert onnx.run(np.arange(4, dtype=np.float32)).tolist() == [0, 1, 2, 3]


def test_a_point_of_another_size_is_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="got 3 values"):
        OnnxFile(files[0]).run(np.zeros(3, dtype=np.float32))


def test_a_file_that_is_no_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not an ONNX file"):
        OnnxFile(path)


@pytest.mark.parametrize("nested", [False, True])
def test_a_network_that_ends_the_process_in_onnxruntime_is_refused(
    tmp_path: Path, nested: bool
) -> None:
    """In a process of its own: where it is not refused, that is aborted."""
    split = helper.make_node("Split", ["x"], ["y", "z"], axis=1, num_outputs=1)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yz"]
    nodes, constants = [split], []
    if nested:
        branch = helper.make_graph([split], "branch", [], results)
        both = {"then_branch": branch, "else_branch": branch}
        nodes = [helper.make_node("If", ["always"], ["y", "z"], **both)]
        constants = [helper.make_tensor("always", TensorProto.BOOL, [], [True])]
    graph = helper.make_graph(nodes, "split", [given], results[:1], constants)
    versions = [helper.make_opsetid("", 18)]
    path = tmp_path / "split.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString()
    )
    (tmp_path / "prop.vnnlib").write_text(PROPERTY)
    (tmp_path / "results.txt").write_text("sat\n((X_0 1.0)\n(X_1 0.0))\n")
    names = ["results.txt", "split.onnx", "prop.vnnlib"]
    command = [
        sys.executable,
        "-m",
        "fgp_vnn",
        "check",
        *(str(tmp_path / n) for n in names),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "2 outputs, but num_outputs 1" in run.stderr


@pytest.mark.parametrize(
    ("results", "code", "message"),
    [
        ("sat\n((X_0 1.0)\n(X_1 0.0)\n(Y_0 1.0)\n(Y_1 0.0))\n", 0, "valid\n"),
        ("sat\n((X_0 1.0)\n(X_1 0.0)\n(Y_0 -5.0)\n(Y_1 9.0))\n", 0, "valid\n"),  # Y is ignored
        ("sat\n((X_0 0.0)\n(X_1 1.0))\n", 1, "not valid: the output [0, 1] is not unsafe\n"),
        ("sat\n", 1, "not valid: sat, but there is no counterexample\n"),
        ("unsat\n", 2, "says unsat, so there is no counterexample"),
        ("perhaps\n", 2, "perhaps"),
    ],
)
def test_the_command_says_whether_a_counterexample_is_valid(
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    results: str,
    code: int,
    message: str,
) -> None:
    (tmp_path / "results.txt").write_text(results)
    assert main(["check", str(tmp_path / "results.txt"), *map(str, files)]) == code
    captured = capsys.readouterr()
    assert message in captured.out + captured.err
    assert "Traceback" not in captured.err


def test_a_missing_file_is_named(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "absent.txt", *map(str, files)]) == 2
    assert "absent.txt" in capsys.readouterr().err
