"""Verdicts on several networks at once, against sampled inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import fgp_vnn
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.cli.main import main
from fgp_vnn.property import load_property
from fgp_vnn.property.results import read_results
from tests.helpers.command_line import one_clear_line

HEAD = """(vnnlib-version <2.0>)
(declare-network f (declare-input X real [2]) (declare-output Y real [1]))
(declare-network g ({}) (declare-input U real [2]) (declare-output V real [1]))
(assert (and (<= X[0] 1.0) (>= X[0] -1.0) (<= X[1] 1.0) (>= X[1] -1.0)))
(assert (== X[1] U[1]))
"""
ALONE = "".join(line for line in HEAD.splitlines(True) if "U" not in line)
SAME = "(assert (== X[0] U[0]))"
RELU = "isomorphic-to f"


def network(path: Path, *, shift: float = 0.0, slope: float = 1.0) -> Path:
    """y = relu(slope x_0 + x_1) + relu(x_0 - x_1 / 2) + shift, which rises with x_0."""
    first = np.array([[slope, 1.0], [1.0, -0.5]], dtype=np.float32).T
    second = np.array([[1.0], [1.0]], dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["z"]),
        helper.make_node("Relu", ["z"], ["h"]),
        helper.make_node("Gemm", ["h", "b", "c"], ["y"]),
    ]
    weights = {"a": first, "b": second, "c": np.array([shift], dtype=np.float32)}
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    sets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)
    return path


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, Path]:
    return {
        "f": network(tmp_path / "f.onnx"),
        "g": network(tmp_path / "g.onnx", shift=0.01, slope=1.05),
    }


def written(folder: Path, text: str) -> Path:
    path = folder / "property.vnnlib"
    path.write_text(text)
    return path


def at(path: Path, x: np.ndarray) -> float:
    session = onnxruntime.InferenceSession(str(path))
    return float(session.run(None, {"x": x.astype(np.float32)[None]})[0][0, 0])


@pytest.mark.slow
def test_a_twin_is_as_near_as_samples_say(tmp_path: Path, pair: dict[str, Path]) -> None:
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 2), -1).reshape(-1, 2)
    apart = max(abs(at(pair["g"], x) - at(pair["f"], x)) for x in grid)
    head = HEAD.format(RELU) + SAME
    for distance, status in ((apart + 0.01, "unsat"), (apart - 0.01, "sat")):
        text = f"(assert (or (> V[0] (+ Y[0] {distance})) (< V[0] (- Y[0] {distance}))))"
        prop = written(tmp_path, head + text)
        verdict = fgp_vnn.verify(pair, prop, timeout=60)
        assert verdict.status == status
    assert verdict.counterexample is not None
    x, y = verdict.counterexample.x, verdict.counterexample.y
    assert x[:2].tolist() == x[2:].tolist()
    assert [at(pair["f"], x[:2]), at(pair["g"], x[2:])] == y.tolist()
    assert abs(y[0] - y[1]) > apart - 0.01


def test_a_network_against_itself_rises_or_not(tmp_path: Path, pair: dict[str, Path]) -> None:
    head = HEAD.format("equal-to f") + "(assert (and (>= X[0] U[0]) (>= U[0] -1.0)))"
    falls = written(tmp_path, head + "(assert (< Y[0] (- V[0] 0.01)))")
    assert fgp_vnn.verify(pair["f"], falls, timeout=60).status == "unsat"
    rises = written(tmp_path, head + "(assert (> Y[0] (+ V[0] 0.01)))")
    assert fgp_vnn.verify({"f": pair["f"]}, rises, timeout=60).status == "sat"


def test_one_network_may_be_compared_with_its_input(tmp_path: Path, pair: dict[str, Path]) -> None:
    head = """(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)
    (assert (<= X_0 1))(assert (>= X_0 0))(assert (<= X_1 1))(assert (>= X_1 0))"""
    for limit, status in ((2.51, "unsat"), (2.4, "sat")):
        prop = written(tmp_path, head + f"(assert (>= (+ Y_0 (* 0.5 X_0) (* -1 X_1)) {limit}))")
        assert fgp_vnn.verify(pair["f"], prop, timeout=60).status == status


def test_the_command_takes_the_list_of_the_competition(
    tmp_path: Path, pair: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    prop = written(tmp_path, HEAD.format(RELU) + SAME + "(assert (> V[0] Y[0]))")
    named = str([(name, str(path)) for name, path in pair.items()])
    results = tmp_path / "results.txt"
    assert main(["verify", named, str(prop), "--results", str(results)]) == 0
    assert capsys.readouterr().out.startswith("sat")
    assert main(["supports", named, str(prop)]) == 0
    assert capsys.readouterr().out == "supported\n"
    said = results.read_text().split("\n")
    assert [line.split()[0] for line in said if "real" in line] == ["X", "Y", "U", "V"]
    found = read_results(results, load_property(prop, joint=True))
    assert found.x is not None and found.y is not None and found.y[1] > found.y[0]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("[('f', 'a.onnx'), ('f', 'b.onnx')]", "is given twice"),
        ("[('f', 3)]", "not a list of named networks"),
        ("[('f', '')]", "not a list of named networks"),
        ("[('f',", "not a list of named networks"),
        ("[]", "no network is named"),
    ],
)
def test_a_list_that_names_no_networks_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    prop = written(tmp_path, HEAD.format(RELU) + SAME + "(assert (> V[0] Y[0]))")
    with pytest.raises(InputError, match=reason):
        fgp_vnn.verify(text, prop)


def test_results_are_not_written_over_a_network_of_a_list(
    tmp_path: Path, pair: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    prop = written(tmp_path, HEAD.format(RELU) + SAME + "(assert (> V[0] Y[0]))")
    named = str([(name, str(path)) for name, path in pair.items()])
    before = pair["g"].read_bytes()
    assert main(["verify", named, str(prop), "--results", str(pair["g"])]) == 2
    one_clear_line(capsys.readouterr().err, ("written over a file that is read",))
    assert pair["g"].read_bytes() == before


@pytest.mark.parametrize("command", ["certify {} x.npy --epsilon 1", "networks {}", "check x {} y"])
def test_commands_for_one_network_say_who_takes_a_list(
    command: str, tmp_path: Path, pair: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    named = str([(name, str(path)) for name, path in pair.items()])
    assert main([part.format(named) for part in command.split()]) == 2
    said = "".join(capsys.readouterr())
    assert "one network is needed; only verify and supports take" in said


@pytest.mark.parametrize(
    "relation, given, reason",
    [
        (RELU, {"f": "f"}, "network g is missing"),
        (RELU, {"f": "f", "g": "g", "h": "f"}, "declares no network 'h'"),
        ("equal-to f", {"f": "f", "g": "g"}, "network g is declared equal to f and is not"),
    ],
)
def test_networks_that_are_not_those_declared_are_refused(
    tmp_path: Path, pair: dict[str, Path], relation: str, given: dict[str, str], reason: str
) -> None:
    prop = written(tmp_path, HEAD.format(relation) + SAME + "(assert (> V[0] Y[0]))")
    with pytest.raises(InputError, match=reason):
        fgp_vnn.verify({name: pair[file] for name, file in given.items()}, prop)


def test_no_certificate_is_promised_for_several_networks(
    tmp_path: Path, pair: dict[str, Path]
) -> None:
    prop = written(tmp_path, HEAD.format(RELU) + SAME + "(assert (> V[0] Y[0]))")
    with pytest.raises(UnsupportedError, match="certificates"):
        fgp_vnn.verify(pair, prop, certificate=tmp_path / "proof.npz")


def test_a_name_that_is_given_twice_is_refused(tmp_path: Path, pair: dict[str, Path]) -> None:
    prop = written(tmp_path, HEAD.format(RELU) + SAME + "(assert (> V[0] Y[0]))")
    twice = str([(name, str(pair[file])) for name, file in (("f", "g"), ("f", "f"), ("g", "g"))])
    with pytest.raises(InputError, match="network 'f' is given twice"):
        fgp_vnn.verify(twice, prop)


def test_one_network_may_be_given_by_its_name(
    tmp_path: Path, pair: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    prop = written(tmp_path, ALONE + "(assert (> Y[0] 4.1))")
    proof = tmp_path / "proof.npz"
    verdict = fgp_vnn.verify({"f": pair["f"]}, prop, certificate=proof, timeout=60)
    assert verdict.status == "unsat" and proof.exists()
    named = str([("f", str(pair["f"]))])
    assert main(["supports", named, str(prop)]) == 0
    assert main(["verify", named, str(prop)]) == 0
    assert capsys.readouterr().out.startswith("supported\nunsat")
    with pytest.raises(InputError, match="several networks are given"):
        fgp_vnn.verify(pair, prop)
