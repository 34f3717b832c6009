"""Recurrent networks written out step by step, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.network import load_network
from tests.helpers.agreement import assert_agrees
from tests.helpers.network_models import Builder

STEPS, READ, HIDDEN = 3, 2, 4
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
WAYS = {"reverse": 1, "bidirectional": 2}


def _saved(
    folder: Path, kind: str, *, ways: int = 1, output: int = 0, start: bool = False, **given: object
) -> Path:
    b = Builder([1, STEPS * READ])
    x = b.op("Reshape", "x", b.ints(STEPS, 1, READ))
    rows = GATES[kind] * HIDDEN
    weights = b.random(ways, rows, READ), b.random(ways, rows, HIDDEN), b.random(ways, 2 * rows)
    first: list[str] = []
    if start:
        made = b.op("MatMul", "x", b.random(STEPS * READ, HIDDEN))
        state = b.op("Reshape", made, b.ints(1, 1, HIDDEN))
        first = ["", state, state][: 3 if kind == "LSTM" else 2]
    outputs = 3 if kind == "LSTM" else 2
    every = b.op(kind, x, *weights, *first, outputs=outputs, hidden_size=HIDDEN, **given)
    size = ways * HIDDEN * (STEPS if output == 0 else 1)
    return b.save(folder / "a.onnx", b.op("Reshape", every[output], b.ints(1, size)))


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_states_are_those_of_onnxruntime(kind: str, start: bool, tmp_path: Path) -> None:
    assert_agrees(load_network(_saved(tmp_path, kind, start=start)))


@pytest.mark.parametrize(
    ("kind", "direction", "output"),
    [
        *(("RNN", direction, output) for direction in WAYS for output in (0, 1)),
        *((kind, "bidirectional", 1) for kind in ("GRU", "LSTM")),
    ],
)
def test_steps_in_the_other_direction(
    kind: str, direction: str, output: int, tmp_path: Path
) -> None:
    path = _saved(tmp_path, kind, ways=WAYS[direction], output=output, direction=direction)
    assert_agrees(load_network(path))


def test_the_last_inner_state_of_an_lstm(tmp_path: Path) -> None:
    assert_agrees(load_network(_saved(tmp_path, "LSTM", output=2)))


@pytest.mark.parametrize("start", [False, True])
def test_a_gru_that_resets_what_its_matrix_gives(start: bool, tmp_path: Path) -> None:
    assert_agrees(load_network(_saved(tmp_path, "GRU", start=start, linear_before_reset=1)))


def test_a_network_of_relus_stays_piecewise_linear(tmp_path: Path) -> None:
    loaded = load_network(_saved(tmp_path, "RNN", activations=["Relu"]))
    assert loaded.network.piecewise_linear
    assert_agrees(loaded)


def test_an_unusual_form_is_refused_by_name(tmp_path: Path) -> None:
    for given in ({"activations": ["Sigmoid", "Softsign", "Tanh"]}, {"clip": 1.0}):
        path = _saved(tmp_path, "LSTM", **given)
        with pytest.raises(InputError, match="LSTM"):
            load_network(path)
