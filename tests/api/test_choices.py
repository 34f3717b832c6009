"""Networks with several inputs or outputs: one is chosen, or they are put together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from fgp_vnn import InputError, load_model
from tests.api.test_models import assert_computes


class Heads(nn.Module):
    """Two inputs, two outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.hidden, self.logits, self.value = nn.Linear(3, 5), nn.Linear(5, 2), nn.Linear(5, 1)

    def forward(self, a: Tensor, b: Tensor) -> dict[str, Tensor]:
        hidden = torch.relu(self.hidden(a - 2 * b))
        return {"logits": self.logits(hidden), "value": self.value(hidden)}


class Chosen(NamedTuple):
    inputs: Any
    outputs: Any
    expected: Callable[[Tensor, Tensor, Heads], Tensor]  # of the vector that varies, and b


CHOICES = [
    Chosen(0, "logits", lambda x, b, m: m(x, b)["logits"]),
    Chosen("first", 1, lambda x, b, m: m(x, b)["value"]),
    Chosen("all", "logits", lambda x, b, m: m(x[:, :3], x[:, 3:])["logits"]),
    Chosen([1, 0], [1, 0], lambda x, b, m: torch.cat([*m(x[:, 3:], x[:, :3]).values()][::-1], 1)),
    Chosen(0, "all", lambda x, b, m: torch.cat([*m(x, b).values()], 1)),
]


@pytest.mark.parametrize("give", ["module", "file"])
@pytest.mark.parametrize("chosen", CHOICES, ids=[f"{c.inputs} {c.outputs}" for c in CHOICES])
def test_one_of_several_inputs_and_outputs_or_all_can_be_chosen(
    tmp_path: Path, give: str, chosen: Chosen
) -> None:
    module, path = Heads(), tmp_path / "heads.onnx"
    b = torch.rand(1, 3)
    names = ["first", "second"], ["logits", "value"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = torch.zeros(1, 3), torch.zeros(1, 3)
        torch.onnx.export(
            _Tuple(module), given, str(path), dynamo=False,
            input_names=names[0], output_names=names[1],
        )  # fmt: skip
    model = module if give == "module" else path
    inputs = "input_0" if (give, chosen.inputs) == ("module", "first") else chosen.inputs
    x = torch.zeros(1, 3), b
    loaded = load_model(model, x, inputs=inputs, outputs=chosen.outputs)
    size = loaded.network.inputs
    assert_computes(loaded, lambda x: chosen.expected(x, b, module), 1, size)


class _Tuple(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.module(a, b).values())


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        ((torch.zeros(3), torch.zeros(3)), {}, "2 inputs (input_0, input_1); choose"),
        ((torch.zeros(3), torch.zeros(3)), {"inputs": 0}, "2 outputs (logits, value); choose"),
        ((torch.zeros(3), torch.zeros(3)), {"inputs": 0, "outputs": 7}, "no output 7"),
        ((torch.zeros(3), torch.zeros(3)), {"inputs": [0, 0], "outputs": 0}, "different ones"),
        ((torch.zeros(3),), {"inputs": 0, "outputs": 0}, "missing 1 required positional"),
    ],
)
def test_choice_that_is_missing_or_wrong_is_said(
    x: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_model(Heads(), x, **options)
    assert words in str(caught.value)
