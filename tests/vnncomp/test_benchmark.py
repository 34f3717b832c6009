"""The bundled benchmark: its files, its generator and its ground truth."""

from __future__ import annotations

import csv
import math
import re
import shutil
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from ground_truth import decide
from oracle.network import read_chain
from oracle.query import Query, read_queries
from tests.helpers.places import BENCHMARK

FOLDER = BENCHMARK
SEED = "2022"


def rows(name: str) -> list[list[str]]:
    with (FOLDER / name).open(encoding="ascii", newline="") as file:
        return list(csv.reader(file))


INSTANCES = rows("instances.csv")
TRUTH = {row[1]: row for row in rows("ground_truth.csv")[1:]}
NETWORKS = sorted(path.name for path in (FOLDER / "onnx").iterdir())


@cache
def generator() -> Any:
    """The module that writes the properties."""
    spec = spec_from_file_location("generate_properties", FOLDER / "generate_properties.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents(folder: Path) -> dict[str, bytes]:
    files = [folder / "instances.csv", *(folder / "vnnlib").iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_seed_reproduces_the_committed_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER / "onnx", tmp_path / "onnx")
    (tmp_path / "vnnlib").mkdir()
    (tmp_path / "vnnlib" / "left_over.vnnlib").write_text("of another seed")
    monkeypatch.chdir(tmp_path)
    assert generator().main([SEED]) == 0
    assert contents(tmp_path) == contents(FOLDER)


def test_another_seed_gives_other_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER / "onnx", tmp_path / "onnx")
    monkeypatch.chdir(tmp_path)
    assert generator().main(["1"]) == 0
    assert contents(tmp_path) != contents(FOLDER)


@pytest.mark.parametrize("arguments", [[], ["x"], ["-1"], ["1", "2"]])
def test_the_generator_refuses_what_is_no_seed(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generator().main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_benchmark_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 2_000_000


def test_every_file_is_listed_once_and_every_listed_file_is_there() -> None:
    assert len({(row[0], row[1]) for row in INSTANCES}) == len(INSTANCES)
    assert {row[0] for row in INSTANCES} == {f"onnx/{name}" for name in NETWORKS}
    written = {f"vnnlib/{path.name}" for path in (FOLDER / "vnnlib").iterdir()}
    assert {row[1] for row in INSTANCES} == written
    assert all(float(row[2]) > 0 for row in INSTANCES)


def test_the_ground_truth_has_a_clear_answer_for_every_instance() -> None:
    assert rows("ground_truth.csv")[0] == ["onnx", "vnnlib", "timeout", "result"]
    assert [row[:3] for row in TRUTH.values()] == INSTANCES
    answers = [row[3] for row in TRUTH.values()]
    assert set(answers) == {"sat", "unsat"}
    assert min(answers.count("sat"), answers.count("unsat")) >= 10


def test_there_are_fifteen_networks_dense_and_convolutional() -> None:
    operators = {
        name: {node.op_type for node in onnx.load(str(FOLDER / "onnx" / name)).graph.node}
        for name in NETWORKS
    }
    assert len(NETWORKS) == 15
    assert sum("Conv" in used for used in operators.values()) == 6
    assert all(used <= {"Gemm", "Conv", "Relu", "Flatten"} for used in operators.values())


@pytest.mark.parametrize("name", NETWORKS)
def test_the_oracle_reads_a_network_as_onnxruntime_does(name: str) -> None:
    path = FOLDER / "onnx" / name
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    chain, shape = read_chain(path), session.get_inputs()[0].shape
    generator = np.random.default_rng(0)
    for x in generator.random((20, 64)).astype(np.float32):
        (expected,) = session.run(None, {"x": x.reshape(shape)})
        actual = chain.pre_activations(x.astype(np.float64))[-1]
        np.testing.assert_allclose(actual, np.ravel(expected), rtol=1e-4, atol=1e-4)


def of_network(name: str) -> Iterator[tuple[str, str, Query]]:
    """The properties of a network, their answers and their queries."""
    for vnnlib, row in TRUTH.items():
        if row[0] == f"onnx/{name}":
            yield from ((vnnlib, row[3], query) for query in read_queries(FOLDER / vnnlib))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_box_is_the_ball_around_an_image_that_is_safe_at_its_centre(name: str) -> None:
    chain = read_chain(FOLDER / "onnx" / name)
    for vnnlib, _, query in of_network(name):
        radius = float(re.findall(r"_(0\.\d+)\.vnnlib$", vnnlib)[0])
        # Clipping to [0, 1] cuts one side at most; sixteenths tell the image from its bounds.
        image = np.where(query.lower > 0, query.lower + radius, query.upper - radius)
        np.testing.assert_allclose(image * 16, np.round(image * 16), atol=1e-6)
        assert (query.lower == np.round(np.maximum(image - radius, 0), 10)).all()
        assert (query.upper == np.round(np.minimum(image + radius, 1), 10)).all()
        unmet = query.rows @ chain.pre_activations(image)[-1] + query.offsets
        assert unmet.min() < 0


@pytest.mark.parametrize("name", NETWORKS)
def test_no_sampled_point_contradicts_unsat(name: str) -> None:
    chain = read_chain(FOLDER / "onnx" / name)
    generator = np.random.default_rng(0)
    for query in (query for _, answer, query in of_network(name) if answer == "unsat"):
        corners = generator.integers(0, 2, (100, len(query.lower)))
        for x in query.lower + corners * (query.upper - query.lower):
            y = chain.pre_activations(x)[-1]
            assert (query.rows @ y + query.offsets).min() < 0


QUICK = [name for name in TRUTH if any(part in name for part in ("16x2", "small", "deep"))]
DECIDED = [*QUICK[::5], *(name for name in TRUTH if "6-12-32_mmr_untargeted_0.03" in name)]


@pytest.mark.parametrize("vnnlib", DECIDED)
def test_the_oracle_agrees_with_the_committed_ground_truth(vnnlib: str) -> None:
    assert decide(FOLDER / TRUTH[vnnlib][0], FOLDER / vnnlib) == TRUTH[vnnlib][3]


def _write_query(path: Path, *, threshold: float) -> None:
    """The box [-1, 1]^2 and the unsafe set Y_0 >= threshold."""
    names = ["X_0", "X_1", "Y_0"]
    lines = [f"(declare-const {name} Real)" for name in names]
    lines += [f"(assert (>= {x} -1.0))\n(assert (<= {x} 1.0))" for x in names[:2]]
    path.write_text("\n".join([*lines, f"(assert (>= Y_0 {threshold}))"]))


def _write_network(path: Path, layers: list[tuple[np.ndarray, np.ndarray]]) -> None:
    nodes, weights, value = [], [], "x"
    for index, (weight, bias) in enumerate(layers):
        last = index == len(layers) - 1
        for part, array in (("w", weight), ("b", bias)):
            weights.append(onnx.numpy_helper.from_array(array.astype(np.float32), f"{part}{index}"))
        target = "y" if last else f"z{index}"
        inputs = [value, f"w{index}", f"b{index}"]
        nodes.append(onnx.helper.make_node("Gemm", inputs, [target], transB=1))
        if not last:
            value = f"a{index}"
            nodes.append(onnx.helper.make_node("Relu", [target], [value]))
    entry, exit_ = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, size])
        for name, size in (("x", 2), ("y", 1))
    )
    graph = onnx.helper.make_graph(nodes, "tiny", [entry], [exit_], weights)
    opsets = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_finds_the_maximum_of_a_tiny_network(seed: int, tmp_path: Path) -> None:
    """With two inputs, a fine grid and a Lipschitz bound enclose the maximum."""
    generator = np.random.default_rng(seed)
    shapes = [(5, 2), (4, 5), (1, 4)]
    layers = [(generator.normal(size=shape), generator.normal(size=shape[0])) for shape in shapes]
    network, query = tmp_path / "tiny.onnx", tmp_path / "tiny.vnnlib"
    _write_network(network, layers)
    chain, steps = read_chain(network), np.linspace(-1, 1, 201)
    grid = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
    y = grid
    for weight, bias in layers:
        y = (grid if y is grid else np.maximum(y, 0)) @ weight.T + bias
    at = int(y.argmax())
    best = float(chain.pre_activations(grid[at])[-1][0])
    assert best == pytest.approx(float(y[at, 0]), abs=1e-4)
    lipschitz = math.prod(float(np.abs(weight).sum(1).max()) for weight, _ in chain.layers)
    _write_query(query, threshold=best - 1e-3)
    assert decide(network, query) == "sat"
    _write_query(query, threshold=best + lipschitz * 0.005 + 2e-3)
    assert decide(network, query) == "unsat"
