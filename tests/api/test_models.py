"""Models as people have them: paths, protos, bytes, torch modules of every kind."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

import fgp_vnn
from fgp_vnn import InputError, UnsupportedError, load_model
from fgp_vnn.network import LoadedNetwork
from tests.helpers.command_line import MODEL
from tests.helpers.network_models import Builder

IMAGE = (1, 6, 6)


def small_cnn() -> nn.Sequential:
    """A convolution, a normalisation, dropout and a linear layer, in training mode."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(2)
    module = nn.Sequential(
        nn.Conv2d(1, 2, 3), norm, nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(32, 3)
    )
    norm.running_mean, norm.running_var = torch.randn(2), torch.rand(2) + 0.5
    return module


def assert_computes(loaded: LoadedNetwork, module: Callable[..., Tensor], *shape: int) -> None:
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).reshape(-1)
    for actual in (
        loaded.runtime.run(x.reshape(-1)),
        loaded.network(torch.from_numpy(x).double().reshape(1, -1))[0].numpy(),
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("give", [str, Path, Path.read_bytes, lambda p: onnx.load(str(p))])
def test_file_proto_and_bytes_are_the_same_network(give: Callable[[Path], Any]) -> None:
    loaded = load_model(give(MODEL))
    x = np.linspace(0, 1, 64, dtype=np.float32)
    np.testing.assert_array_equal(loaded.runtime.run(x), load_model(MODEL).runtime.run(x))
    result = fgp_vnn.certify(give(MODEL), x[None, None], epsilon=1e-4)
    assert isinstance(result, fgp_vnn.Robustness) and result.status == "robust"


def test_proto_without_its_weights_is_told_how_to_bring_them(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = onnx.load(str(MODEL))
    onnx.save_model(model, str(path), save_as_external_data=True, location="w", size_threshold=0)
    with pytest.raises(InputError, match=r"are in the file 'w'.* give the path"):
        load_model(onnx.load(str(path), load_external_data=False))
    assert load_model(onnx.load(str(path))).network.inputs == 64


def _traced(module: nn.Module) -> Any:
    return torch.jit.trace(module.eval(), torch.zeros(1, *IMAGE))  # type: ignore[no-untyped-call]


KINDS: dict[str, tuple[Callable[[nn.Module], Any], str]] = {
    "as it is": (lambda m: m, ""),
    "float64": (lambda m: m.double(), "(float64) taken as float32"),
    "half": (lambda m: m.half(), "(float16) taken as float32"),
    "bfloat16": (lambda m: m.bfloat16(), "(bfloat16) taken as float32"),
    "compiled": (torch.compile, ""),
    "scripted": (lambda m: torch.jit.script(m.eval()), ""),
    "traced": (lambda m: _traced(m), ""),
    "in parallel": (nn.DataParallel, ""),
}


@pytest.mark.parametrize("kind", KINDS)
def test_modules_of_every_kind_are_verified_in_float32(kind: str) -> None:
    change, note = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        module = change(small_cnn())
    loaded = load_model(module, torch.zeros(IMAGE))
    assert note in loaded.note
    assert bool(note) == bool(loaded.note)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        reference = copy.deepcopy(getattr(module, "_orig_mod", module)).float().eval()
    assert_computes(loaded, reference, 1, *IMAGE)
    result = fgp_vnn.certify(module, np.zeros(IMAGE), epsilon=1e-3)
    assert isinstance(result, fgp_vnn.Robustness)
    assert result.status == "robust"
    assert result.note == loaded.note
    assert result.as_dict().get("note", "") == loaded.note


def test_module_that_keeps_a_computed_weight_is_copied() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this weight_norm is deprecated
        module = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2)))
    module(torch.zeros(1, 3))
    assert_computes(load_model(module, np.zeros(3)), module, 1, 3)


def test_weights_that_float32_does_not_hold_are_said_to_be_rounded() -> None:
    module = nn.Linear(2, 2).double()
    module.weight.data.fill_(0.1)
    assert "(float64) rounded to float32" in load_model(module, [0.0, 1.0]).note


def test_module_is_left_as_it_was() -> None:
    module = small_cnn()
    module[1].eval()  # a frozen normalisation
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    load_model(module, torch.zeros(IMAGE))
    assert [layer.training for layer in module] == [True, False, True, True, True, True]
    assert all(torch.equal(tensor, module.state_dict()[name]) for name, tensor in state.items())
    assert not any(layer._forward_pre_hooks or layer._forward_hooks for layer in module)


@pytest.mark.parametrize(
    ("x", "many"),
    [
        (np.zeros(IMAGE), False),
        (np.zeros((1, *IMAGE)), False),
        (np.zeros((4, *IMAGE)), True),
        (torch.zeros(IMAGE, dtype=torch.float64), False),
        (np.zeros(IMAGE).tolist(), False),
    ],
)
def test_shape_of_an_input_comes_from_x(x: Any, many: bool) -> None:
    result = fgp_vnn.certify(small_cnn(), x, epsilon=1e-3)
    assert isinstance(result, list) == many
    assert load_model(small_cnn(), x).input_shape == (1, *IMAGE)


@pytest.mark.parametrize(
    ("layers", "x", "shape"),
    [
        ([nn.Linear(6, 2)], np.zeros((5, 6)), (1, 6)),
        ([nn.Linear(6, 2)], np.zeros(6), (1, 6)),
        ([nn.Flatten(), nn.Linear(36, 2)], np.zeros((6, 6)), (1, 6, 6)),
        ([nn.Flatten(), nn.Linear(36, 2)], np.zeros((5, 6, 6)), (1, 6, 6)),
        ([nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(15, 2)], np.zeros((2, 6)), (1, 2, 6)),
        ([nn.Conv2d(1, 3, 6), nn.Flatten()], np.zeros((1, 6, 6)), (1, 1, 6, 6)),
    ],
)
def test_batch_is_told_from_a_single_input(layers: Any, x: Any, shape: tuple[int, ...]) -> None:
    assert load_model(nn.Sequential(*layers), x).input_shape == shape


def test_open_sizes_of_a_file_come_from_x(tmp_path: Path) -> None:
    builder = Builder(("n", 1, "height", "width"))
    end = builder.op("Flatten", builder.op("GlobalAveragePool", "x"))
    path = builder.save(tmp_path / "open.onnx", end)
    with pytest.raises(UnsupportedError, match=r"load_model\(..., x\)"):
        load_model(path)
    assert load_model(path, np.zeros((7, 1, 5, 4))).input_shape == (1, 1, 5, 4)
    with pytest.raises(InputError, match="does not fit"):
        load_model(path, np.zeros((7, 2, 5, 4)))


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


class Unknown(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.linalg.matrix_exp(x.reshape(-1, 2, 2))
        return result.flatten(1)


class Raising(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("no such thing")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (Unknown(), ("layer '1' (Unknown)", "linalg_matrix_exp")),
        (Raising(), ("layer '1' (Raising)", "no such thing")),
        (Branching(), ("depend on the values of x",)),
        (nn.Sequential(nn.Identity(), nn.ELU(-1.0), nn.Tanh()), ("Elu", "negative")),
        (nn.Linear(5, 2), ("layer '1' (Linear)", "shapes")),
    ],
)
def test_failing_export_names_the_layer_and_prints_nothing(
    layer: nn.Module, words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError) as caught:
        load_model(nn.Sequential(nn.Linear(3, 4), layer), np.zeros(3))
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert "/tmp" not in said
    assert ".onnx" not in said
    assert capfd.readouterr() == ("", "")


def test_export_prints_and_warns_of_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    load_model(small_cnn(), np.zeros(IMAGE))
    assert capfd.readouterr() == ("", "")


def test_module_that_begins_with_a_convolution_asks_for_an_input() -> None:
    with pytest.raises(InputError, match=r"fgp_vnn.load_model\(module, x\)"):
        load_model(small_cnn())
    assert callable(fgp_vnn.load_model)


@pytest.mark.parametrize("last", [[], [nn.Hardsigmoid()]], ids=["logit", "sigmoid"])
def test_network_with_one_output_has_two_classes(last: list[nn.Module]) -> None:
    module = nn.Sequential(nn.Linear(2, 1), *last)
    module[0].weight.data = torch.tensor([[1.0, -1.0]])
    module[0].bias.data = torch.tensor([-0.5])
    results = fgp_vnn.certify(module, np.asarray([[1.0, 0.0], [0.0, 0.0]]), epsilon=0.3)
    assert isinstance(results, list)
    assert [(r.status, r.label) for r in results] == [("robust", 1), ("robust", 0)]
    wide = fgp_vnn.certify(module, np.asarray([1.0, 0.0]), epsilon=0.4)
    assert isinstance(wide, fgp_vnn.Robustness)
    assert wide.status == "not_robust"
    found = fgp_vnn.radius(module, np.asarray([1.0, 0.0]))
    assert isinstance(found, fgp_vnn.Radius)
    assert found.lower <= 0.5 / 2**0.5 <= found.upper


def test_constant_in_double_is_refused_unless_the_file_rounds_it(tmp_path: Path) -> None:
    builder = Builder((1, 2))
    tenth = builder.const(0.1, np.float64)
    rounded = builder.op("Cast", tenth, to=onnx.TensorProto.FLOAT)
    path = builder.save(tmp_path / "cast.onnx", builder.op("Mul", "x", rounded))
    assert load_model(path).runtime.run(np.ones(2, dtype=np.float32))[0] == np.float32(0.1)
    wide = builder.op("Cast", "x", to=onnx.TensorProto.DOUBLE)
    product = builder.op("Cast", builder.op("Mul", wide, tenth), to=onnx.TensorProto.FLOAT)
    with pytest.raises(UnsupportedError, match=r"operator Mul .* in double"):
        load_model(builder.save(tmp_path / "double.onnx", product))
