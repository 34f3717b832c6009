"""Monotonicity in one input, against sampled pairs of inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.main import main


def rising(seed: int = 0, inputs: int = 2) -> nn.Sequential:
    """A network that never falls in its first input: nothing on the way is negative."""
    torch.manual_seed(seed)
    first, second, last = nn.Linear(inputs, 6), nn.Linear(6, 4), nn.Linear(4, 2)
    net = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)
    with torch.no_grad():
        first.weight[:, 0].abs_()
        second.weight.abs_()
        last.weight.abs_()
    return net


BOX = (-0.5 * np.ones(2), 0.5 * np.ones(2))


def test_a_network_that_rises_is_proved_to_do_so_and_not_to_fall() -> None:
    question = fgp_vnn.monotonicity(rising(), BOX, 0, tolerance=0.01)
    assert fgp_vnn.verify(question.model, question.property, timeout=60).status == "unsat"
    other = fgp_vnn.monotonicity(rising(), BOX, 0, tolerance=0.01, decreasing=True)
    assert fgp_vnn.verify(other.model, other.property, timeout=60).status == "sat"


@pytest.mark.parametrize(("seed", "decreasing"), [(0, False), (1, True), (2, False)])
def test_a_counterexample_is_a_pair_of_inputs_between_which_an_output_falls(
    seed: int, decreasing: bool
) -> None:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    box = torch.zeros(3), torch.ones(3)
    question = fgp_vnn.monotonicity(net, box, 1, outputs=1, decreasing=decreasing, tolerance=0.02)
    verdict = fgp_vnn.verify(question.model, question.property, timeout=60)
    points = torch.rand(4000, 3)
    others = points.clone()
    others[:, 1] = torch.rand(4000)
    with torch.no_grad():
        rise = ((net(others) - net(points))[:, 1] * (others - points)[:, 1].sign()).numpy()
    rise = -rise if decreasing else rise
    if verdict.status == "unsat":
        assert rise.min() >= -0.02
    else:
        assert verdict.status == "sat" and verdict.counterexample is not None
        low, high = question.pair(verdict.counterexample.x)
        assert low[1] <= high[1] and (low[[0, 2]] == high[[0, 2]]).all()
        assert (low >= 0).all() and (high <= 1).all()
        with torch.no_grad():
            ends = net(torch.tensor(np.stack([low, high]), dtype=torch.float32))[:, 1].numpy()
        assert (ends[1] - ends[0] if decreasing else ends[0] - ends[1]) > 0.019


def test_the_model_of_the_question_is_the_difference_of_the_network_at_both_inputs() -> None:
    net = rising(3, inputs=4)
    question = fgp_vnn.monotonicity(net, (np.zeros(4), np.ones(4)), 2, tolerance=1)
    loaded = fgp_vnn.load_model(question.model)
    chance = np.random.default_rng(0)
    for v in chance.uniform(-2, 2, (50, 5)).astype(np.float32):
        low, high = question.pair(v)
        with torch.no_grad():
            ends = net(torch.from_numpy(np.stack([low, high]))).numpy()
        assert np.allclose(loaded.runtime.run(v), ends[1] - ends[0], atol=1e-5)


def test_its_two_files_have_a_certificate(tmp_path: Path) -> None:
    proof = tmp_path / "proof.npz"
    model, prop, _ = fgp_vnn.monotonicity(rising(), BOX, 0, tolerance=0.02)
    verdict = fgp_vnn.verify(model, prop, certificate=proof, timeout=60)
    assert verdict.status == "unsat" and verdict.certificate, verdict.reason
    files = [str(tmp_path / f"proof.{end}") for end in ("npz", "onnx", "vnnlib")]
    assert main(["check-certificate", *files]) == 0


@pytest.mark.slow
def test_a_strict_face_of_the_box_does_not_count() -> None:
    """|x| falls on x < 0, but only by what the open box allows."""
    first, last = nn.Linear(1, 2, bias=False), nn.Linear(2, 1, bias=False)
    net = nn.Sequential(first, nn.ReLU(), last)
    with torch.no_grad():
        first.weight[:] = torch.tensor([[1.0], [-1.0]])
        last.weight[:] = torch.ones(1, 2)
    x, _ = fgp_vnn.variables(net)
    # Exactly 1 only from -1, which is left out.
    question = fgp_vnn.monotonicity(net, (x > -1) & (x <= 1), 0, tolerance=1 - 2**-30)
    assert fgp_vnn.verify(question.model, question.property, timeout=0.3).status != "sat"
    wider = fgp_vnn.monotonicity(net, (x > -1) & (x <= 1), 0, tolerance=0.5)
    assert fgp_vnn.verify(wider.model, wider.property, timeout=60).status == "sat"


def test_a_network_that_was_loaded_before_is_asked_like_its_model() -> None:
    asked = [rising(), fgp_vnn.load_model(rising())]
    first, second = (fgp_vnn.monotonicity(net, BOX, 0, tolerance=0.1) for net in asked)
    assert first.model == second.model


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"entry": 2}, "entry is 2; the inputs are numbered from 0 to 1"),
        ({"entry": 0.5}, "entry is 0.5; it must be a whole number"),
        ({"outputs": [0, 7]}, "output is 7"),
        ({"tolerance": -1}, "tolerance"),
        ({"inputs": fgp_vnn.Ball([0.0, 0.0], 1, "l2")}, "about boxes"),
    ],
)
def test_what_makes_no_question_is_refused_by_name(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"inputs": BOX, "entry": 0, "tolerance": 0.1} | change
    with pytest.raises(InputError, match=said):
        fgp_vnn.monotonicity(rising(), given.pop("inputs"), given.pop("entry"), **given)


def test_the_command_line_writes_the_same_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fgp_vnn.api.written import onnx_of

    onnx.save(onnx_of(rising()), tmp_path / "net.onnx")
    np.savez(tmp_path / "box.npz", lower=BOX[0], upper=BOX[1])
    words = ["property", str(tmp_path / "net.onnx"), str(tmp_path / "box.npz"), "--monotone", "0"]
    out = tmp_path / "folder"
    assert main([*words, "--tolerance", "0.01", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"1 instance in {out / 'instances.csv'}\n"
    network, prop, _ = (out / "instances.csv").read_text().strip().split(",")
    assert fgp_vnn.verify(out / network, out / prop, timeout=60).status == "unsat"
    assert main([*words, "--out", str(out)]) == 2 and "--tolerance" in capsys.readouterr().err
    assert main([*words[:3], "--decreasing", "--epsilon", "0.1", "--out", str(out)]) == 2
    assert main([*words[:3], "--out", str(out)]) == 2


@pytest.mark.parametrize("name", ["flat_shape", "pair_chosen", "pair_places", "low_d", "high_x"])
def test_names_of_the_network_are_not_those_of_what_is_put_around_it(name: str) -> None:
    """The network is x[1] - 3 x[0], by a constant that has a name we might want for our own."""
    order = numpy_helper.from_array(np.array([1, 0]), name)
    weight = numpy_helper.from_array(np.array([[1.0], [-3.0]], dtype=np.float32), "vector_low")
    nodes = [
        helper.make_node("Gather", ["x", name], ["d"], axis=1),
        helper.make_node("MatMul", ["d", "vector_low"], ["difference"]),
    ]
    shapes = [
        helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, [1, size])
        for value, size in (("x", 2), ("difference", 1))
    ]
    graph = helper.make_graph(nodes, "g", shapes[:1], shapes[1:], [order, weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    found = []
    for decreasing in (False, True):
        asked = fgp_vnn.monotonicity(model, BOX, 0, tolerance=0.1, decreasing=decreasing)
        found.append(fgp_vnn.verify(asked.model, asked.property, timeout=60).status)
    assert found == ["sat", "unsat"]
