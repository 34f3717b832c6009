"""Products by oneDNN: they are right up to rounding, and used only where they can be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from fgp_vnn.network.maps import products
from fgp_vnn.network.maps.products import product

UNIT = torch.finfo(torch.float32).eps / 2


@pytest.fixture(autouse=True)
def _tried_anew() -> Iterator[None]:
    products._quick.cache_clear()
    yield
    products._quick.cache_clear()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the values that were multiplied by a second library, which counts calls."""
    seen = list[tuple[int, ...]]()

    def counted(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        seen.append(tuple(values.shape))
        return linear(values, weight, bias)

    monkeypatch.setattr(products, "_quick", lambda: counted)
    return seen


SHAPES = [(400, 70), (1, 30_000), (2, 129, 200), (40, 1, 700)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_products_are_within_the_error_of_a_sum_in_any_order(
    shape: tuple[int, ...], turned: bool, with_bias: bool
) -> None:
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(shape, generator=generator) * 1e3
    weight = torch.randn(700, shape[-1], generator=generator)
    weight = weight.T.contiguous().T if turned else weight
    bias = torch.randn(700, generator=generator) if with_bias else None
    with torch.no_grad():
        found = product(values, weight, bias)
    exact = _in_float64(values, weight, bias)
    size = _in_float64(values.abs(), weight.abs(), None if bias is None else bias.abs())
    assert found.dtype == torch.float32 and found.shape == exact.shape
    assert bool(((found - exact).abs() <= 2 * (shape[-1] + 2) * UNIT * size).all())


@pytest.mark.parametrize("part", ["every second", "one repeated", "a column"])
def test_a_bias_with_gaps_between_its_entries_is_read_as_it_is(part: str) -> None:
    generator = torch.Generator().manual_seed(4)
    values, weight, table = (
        torch.randn(shape, generator=generator) for shape in ((400, 70), (700, 70), (700, 2))
    )
    parts = {"every second": table.flatten()[::2], "one repeated": table[0, :1].expand(700)}
    bias = parts.get(part, table[:, 1])
    with torch.no_grad():
        found = product(values, weight, bias)
        usual = linear(values, weight, bias)
    assert not bias.is_contiguous() and torch.allclose(found, usual, atol=1e-4)


def _in_float64(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return linear(values.double(), weight.double(), None if bias is None else bias.double())


@pytest.mark.parametrize("special", [torch.inf, -torch.inf, torch.nan, 1e30])
def test_an_overflow_is_not_lost(special: float) -> None:
    values = torch.ones(400, 70)
    values[7, 3] = special
    weight = torch.full((700, 70), 1e10)
    with torch.no_grad():
        found = product(values, weight)
    assert not bool(found[7].isfinite().any()) and bool(((found[8] - 70e10).abs() < 1e6).all())


def test_gradients_small_products_and_other_types_are_left_to_the_usual_library(
    calls: list[tuple[int, ...]],
) -> None:
    values, weight = torch.ones(400, 70), torch.ones(700, 70)
    product(values, weight)  # gradients are recorded
    with torch.no_grad():
        product(values[:3], weight)
        product(values.double(), weight.double())
    assert not calls
    with torch.inference_mode():
        product(values, weight)
    assert calls == [(400, 70)]
    assert product(values.requires_grad_(), weight).requires_grad


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512"
    or not hasattr(torch.ops.mkldnn, "_linear_pointwise"),
    reason="needs AVX-512, and a torch that offers oneDNN's product",
)
def test_where_it_can_be_used_the_second_library_is_right() -> None:
    assert products._quick() is not None


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_the_trial_of_a_library_does_not_depend_on_the_default_type(default: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    types = set[torch.dtype]()

    def seen(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        types.update((values.dtype, weight.dtype))
        return linear(values, weight, bias)

    try:
        assert products._right(seen) and types == {torch.float32}
    finally:
        torch.set_default_dtype(before)


def test_a_library_that_is_missing_or_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX512")
    wrong = torch.zeros(2, 37, 29)
    assert not products._right(lambda values, weight, bias: wrong)

    def fails(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        raise RuntimeError("not built with oneDNN")

    monkeypatch.setattr(products, "_right", lambda way: fails(wrong, wrong, None))
    assert products._quick() is None
    products._quick.cache_clear()
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(products, "_right", lambda way: True)
    assert products._quick() is None
