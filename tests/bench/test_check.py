from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.bench.check import OnnxFile, judge, load_judged
from fgp_vnn.cli.main import main
from fgp_vnn.property import Property, load_property
from tests.helpers.bench_folders import PROPERTY, identity


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The identity on the plane, broken where the first coordinate is at least the second."""
    network, prop = tmp_path / "net.onnx", tmp_path / "prop.vnnlib"
    network.write_bytes(identity())
    prop.write_text(PROPERTY)
    return network, prop


def fault_of(x: NDArray[np.float64], network: OnnxFile, prop: Property) -> str:
    """Why a point is not a counterexample; empty if it is one."""
    return judge(x, None, network, prop).fault


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
        ([1.0], "1 input, the property has 2"),
    ],
)
def test_a_point_is_judged_in_float32_with_no_tolerance(
    files: tuple[Path, Path], point: list[float], message: str
) -> None:
    found = fault_of(np.array(point), OnnxFile(files[0]), load_property(files[1]))
    assert message in found
    assert bool(message) == bool(found)


@pytest.mark.parametrize(
    ("bounds", "point", "message"),
    [
        ("(> X_0 0)(<= X_0 1)(>= X_1 0)(<= X_1 1)", [0, 0.5], "X_0 = 0 is not in (0, 1]"),
        ("(>= X_0 0)(<= X_0 1)(>= X_1 0)(< X_1 1)", [0.5, 1], "X_1 = 1 is not in [0, 1)"),
        # No float32 is 0.1, so the value of X_0 as written counts.
        ("(= X_0 0.1)(>= X_1 0)(< X_1 1)", [0.1, 1], "X_1 = 1 is not in [0, 1)"),
    ],
)
def test_a_point_on_an_open_face_is_reported_with_the_face(
    files: tuple[Path, Path], bounds: str, point: list[float], message: str
) -> None:
    files[1].write_text(bounded(bounds))
    found = fault_of(np.array(point), OnnxFile(files[0]), load_property(files[1]))
    assert found == f"counterexample on an open face of the box: {message}"


def bounded(bounds: str) -> str:
    """A property that all inputs within the bounds break."""
    declared = "".join(f"(declare-const {name}_{i} Real)" for name in "XY" for i in (0, 1))
    asserts = f"{bounds}(>= Y_0 -9)".replace(")(", "))(assert (")
    return f"{declared}(assert {asserts})"


def test_a_box_whose_only_float32_is_on_an_open_face_is_judged_as_written(
    files: tuple[Path, Path],
) -> None:
    files[1].write_text(bounded("(> X_0 0.5)(< X_0 0.50000001)(>= X_1 0)(<= X_1 1)"))
    judged = OnnxFile(files[0]), load_property(files[1])
    assert not fault_of(np.array([0.500000005, 1.0]), *judged)
    assert "on an open face" in fault_of(np.array([0.5, 1.0]), *judged)


RELATED = (
    "".join(f"(declare-const {name}_{i} Real)" for name in "XY" for i in (0, 1))
    + "".join(f"(assert (>= X_{i} 0.0))(assert (<= X_{i} 1.0))" for i in (0, 1))
    + "(assert (<= X_0 X_1))(assert (>= (+ Y_0 X_1) 1.5))"
)
TWINS = """(vnnlib-version <2.0>)
(declare-network f (declare-input X real [2]) (declare-output Y real [2]))
(assert (and (>= X[0] 0.0) (<= X[0] 1.0) (== X[0] X[1]) (>= Y[1] 0.5)))
"""


@pytest.mark.parametrize(
    ("text", "point", "message"),
    [
        (RELATED, [0.5, 1.0], ""),
        (RELATED, [0.75, 0.75], ""),
        (RELATED, [1.0, 0.75], "is not unsafe at this input"),  # X_0 is above X_1
        (RELATED, [0.25, 1.0], "is not unsafe at this input"),
        (RELATED, [0.5, 1.5], "outside the box by 0.5"),
        (RELATED, [0.5], "1 input, the property has 2"),
        (TWINS, [0.5, 0.5], ""),
        (TWINS, [0.25, 0.25], "is not unsafe"),
        (TWINS, [0.5, 0.75], "inputs that have to be equal differ"),
    ],
)
def test_constraints_between_inputs_and_others_are_judged(
    tmp_path: Path, text: str, point: list[float], message: str
) -> None:
    network, prop = tmp_path / "net.onnx", tmp_path / "prop.vnnlib"
    network.write_bytes(identity())
    prop.write_text(text)
    found = fault_of(np.array(point), OnnxFile(network), load_judged(prop))
    assert message in found
    assert bool(message) == bool(found)


def test_a_run_judges_the_counterexample_of_related_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str
) -> None:
    monkeypatch.setattr("sys.executable", warm_python)  # that of the worker
    (tmp_path / "net.onnx").write_bytes(identity())
    (tmp_path / "prop.vnnlib").write_text(RELATED)
    (tmp_path / "instances.csv").write_text("net.onnx,prop.vnnlib,60\n")
    assert main(["bench", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    (line,) = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["result"], record["confirmed"]) == ("sat", True)
    assert set(record["standings"].values()) == {"valid"}


def test_a_property_of_several_networks_is_not_judged(tmp_path: Path) -> None:
    second = (
        "(declare-network g (equal-to f) (declare-input U real [2])(declare-output V real [2]))"
    )
    text = TWINS.replace("(assert", f"{second}(assert (and (== U[0] X[0]) (== U[1] X[1])))(assert")
    (tmp_path / "prop.vnnlib").write_text(text)
    with pytest.raises(UnsupportedError, match="about 2 networks, and not one"):
        load_judged(tmp_path / "prop.vnnlib")


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
    assert fault_of(np.array([0.75]), onnx, loaded) == ""
    assert "is not unsafe" in fault_of(np.array([2.5]), onnx, loaded)
    assert "outside the box by 0.5" in fault_of(np.array([1.5]), onnx, loaded)


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
