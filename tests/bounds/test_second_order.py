"""Forms of second order carried through networks."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
import torch
from mpmath import mpf, workprec
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.curved_forms import reach
from fgp_vnn.bounds.quadratics import least, without_symbols
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.second_order import Carried, SecondOrder, applies
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.activations.gates import SOFTPLUS
from fgp_vnn.network.activations.powers import EXP, SQUARE
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.activations.sigmoids import SIGMOID, TANH
from fgp_vnn.network.activations.waves import COS, SIN
from fgp_vnn.network.model import Combination, Dense, Network
from tests.helpers.extreme_networks import Exact, apply, exact
from tests.helpers.flushing import flushed
from tests.helpers.random_networks import generator, normal

FUNCTIONS = {
    "Sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "Tanh": mpmath.tanh,
    "Sin": mpmath.sin,
    "Cos": mpmath.cos,
    "Exp": mpmath.exp,
}
CURVES = (SQUARE, SIGMOID, TANH, SIN, COS, EXP, SOFTPLUS)


def random_network(seed: int, scale: float = 1.0, curve: Activation = SQUARE) -> Network:
    """Two ReLU layers, products of sums of them, a curve of sums of these, and ReLUs once more; one
    of the outputs does not bend."""
    random = generator(seed)

    def dense(count: int, **sources: int) -> Dense:
        numbers = tuple(int(name[1:]) for name in sources)
        weights = tuple(scale * normal(random, count, n) for n in sources.values())
        return Dense(numbers, weights, scale * normal(random, count))

    left, right = torch.randint(0, 4, (2, 5), generator=random)
    layers = (
        dense(4, s0=3),
        dense(3, s0=3, s1=4),
        dense(4, s0=3, s2=3),
        dense(3, s0=3, s3=5),
        dense(2, s3=5, s4=3),
    )
    output = dense(3, s0=3, s3=5, s4=3, s5=2)
    for weight in output.weights[1:]:
        weight[2] = 0
    rows = torch.tensor([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0], [0.0, 0.0, 1.0]]).double()
    whole = Combination(output, rows, torch.ones(3).double())
    kinds = (RELU, RELU, Product(left, right), curve, RELU)
    return Network(layers, whole if seed % 2 else output, 3, kinds)


def random_boxes(seed: int, size: float, count: int = 6) -> Box:
    random = generator(1000 + seed)
    center = normal(random, count, 3)
    return Box(center - size * normal(random, count, 3).abs(), center + size)


def carried(network: Network, box: Box, symbols: int) -> tuple[SecondOrder, Carried]:
    forms = SecondOrder(network, symbols)
    signs = torch.zeros(len(box.lower), network.neurons, dtype=torch.int8)
    return forms, forms.rows(box, signs)


def bounds(network: Network, box: Box, symbols: int = 4) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds [boxes, outputs] by the forms."""
    forms, found = carried(network, box, symbols)
    shape, bent = forms.shape, forms.bent
    straight = found.bend.new_full((network.outputs,), len(bent)).long()
    place = straight.index_copy(0, bent, torch.arange(len(bent)))
    sides = []
    for sign in (1, -1):
        flat, bend = sign * found.flat, sign * found.bend[:, place]
        sides.append(sign * least(without_symbols(flat, bend, found.error, shape), 8).bound)
    return sides[0], sides[1]


def sampled(box: Box, seed: int, count: int = 500) -> Tensor:
    """[points, boxes, inputs], corners among them."""
    share = torch.rand(count, *box.lower.shape, generator=generator(seed), dtype=torch.float64)
    share[::3] = share[::3].round()
    return box.lower + (box.upper - box.lower) * share


@pytest.mark.parametrize(
    ("seed", "size", "symbols"), [(0, 1e-6, 0), (1, 0.05, 2), (0, 0.5, 7), (1, 2.0, 2), (1, 2.0, 0)]
)
@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_no_sampled_value_is_outside_the_bounds(
    seed: int, curve: Activation, size: float, symbols: int
) -> None:
    network, box = random_network(seed, 0.5, curve), random_boxes(seed, size)
    lower, upper = bounds(network, box, symbols)
    points = sampled(box, seed)
    y = network(points.flatten(0, 1)).view(*points.shape[:2], -1)
    slack = 1e-11 * y.abs().amax(0)
    assert bool((lower <= y.amin(0) + slack).all() and (y.amax(0) <= upper + slack).all())


@pytest.mark.parametrize(("seed", "size"), [(0, 0.01), (1, 0.3), (0, 1.0)])
@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_forms_and_their_errors_reach_every_sampled_value(
    seed: int, curve: Activation, size: float
) -> None:
    network, box = random_network(seed, 0.5, curve), random_boxes(seed, size)
    forms, found = carried(network, box, 4)
    points, shape = sampled(box, seed), forms.shape
    value = network(points.flatten(0, 1)).view(*points.shape[:2], -1)
    y = (points - box.center) / reach(box)
    first, second = shape.pairs
    flat, mixed = found.flat[:, :, : 1 + shape.inputs], found.bend[:, :-1]
    one = torch.ones_like(y[..., :1])
    made = torch.einsum("pbi,bri->pbr", torch.cat([one, y], -1), flat)
    squares = y[..., first] * y[..., second]
    pairs = mixed[..., : len(first)]
    made[..., forms.bent] += torch.einsum("pbi,bri->pbr", squares, pairs)
    room = found.flat[:, :, 1 + shape.inputs :].expand(len(y), -1, -1, -1).clone()
    room[:, :, forms.bent] += torch.einsum("brki,pbi->pbrk", shape.mixed(mixed), y)
    room = room.abs().sum(-1) + found.error
    assert bool(((value - made).abs() <= room + 1e-11 * value.abs().amax()).all())


@pytest.mark.parametrize("seed", range(6))
def test_signs_are_those_of_every_sample(seed: int) -> None:
    network, box = random_network(seed), random_boxes(seed, 0.2)
    _, found = carried(network, box, 4)
    points = sampled(box, seed)
    z = torch.cat(network.preactivations(points.flatten(0, 1))[:-1], -1)
    z = z.view(*points.shape[:2], -1)
    assert bool((found.signs != 0).any())
    assert bool(((found.signs <= 0) | (z >= -1e-9)).all())
    assert bool(((found.signs >= 0) | (z <= 1e-9)).all())


def test_known_signs_are_kept() -> None:
    network, box = random_network(1), random_boxes(1, 2.0)
    signs = torch.ones(len(box.lower), network.neurons, dtype=torch.int8)
    found = SecondOrder(network, 4).rows(box, signs).signs
    relus = torch.cat([torch.full((layer.outputs,), f is RELU) for layer, f in zip(
        network.layers, network.activations, strict=True)])  # fmt: skip
    assert bool((found[:, relus] == 1).all()) and bool((found[:, ~relus] == 0).all())


def evaluate(network: Network, x: Exact) -> Exact:
    """The outputs in rational arithmetic."""
    values = [x]
    for layer, activation in zip(network.layers, network.activations, strict=True):
        z = apply(layer, values)
        if activation is RELU:
            values.append([max(value, Fraction(0)) for value in z])
        elif activation is SQUARE:
            values.append([value * value for value in z])
        else:
            assert isinstance(activation, Product)
            pairs = zip(activation.left.tolist(), activation.right.tolist(), strict=True)
            values.append([z[i] * z[j] for i, j in pairs])
    return apply(network.output, values)


def check_exactly(seed: int, scale: float, size: float) -> None:
    network, box = random_network(seed, scale), random_boxes(seed, size, 2)
    if size < 1e-100:
        box = Box(size * box.lower, size * box.upper)
    lower, upper = bounds(network, box)
    points = torch.stack([box.lower, box.upper, *sampled(box, seed, 4)])
    for i in range(2):
        for point in points[:, i]:
            inside = torch.minimum(torch.maximum(point, box.lower[i]), box.upper[i])
            y = evaluate(network, exact(inside))
            for j, value in enumerate(y):
                assert not lower[i, j].isfinite() or exact(lower[i, j])[0] <= value
                assert not upper[i, j].isfinite() or value <= exact(upper[i, j])[0]


SCALES = [(1.0, 1e-15), (1.0, 0.0), (1e3, 1e-9), (1e-3, 1e-12), (1e-80, 1.0), (1e-170, 1e-160)]
SCALES += [(1e30, 1.0), (1e70, 1e-3)]


@pytest.mark.parametrize(("scale", "size"), SCALES)
@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_in_exact_arithmetic(seed: int, scale: float, size: float) -> None:
    check_exactly(seed, scale, size)


@pytest.mark.parametrize(("scale", "size"), SCALES)
def test_bounds_hold_where_small_numbers_are_flushed(scale: float, size: float) -> None:
    with flushed():
        check_exactly(3, scale, size)


@pytest.mark.parametrize("size", [0.0, 1e-14, 1e-5, 0.1])
@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "Sin", "Cos", "Exp"])
def test_expansions_hold_in_high_precision(name: str, size: float) -> None:
    """f(3 x) for points of small boxes, without a layer in between."""
    curve = {f.name: f for f in CURVES}[name]
    weight, zero = 3 * torch.ones(1, 1).double(), torch.zeros(1).double()
    network = Network(
        (Dense((0,), (weight,), zero),), Dense((1,), (weight / 3,), zero), 1, (curve,)
    )
    random = generator(5)
    center = 2 * normal(random, 60, 1)
    box = Box(center - size, center + size)
    lower, upper = bounds(network, box)
    with workprec(200):
        function = FUNCTIONS[name]
        for i in range(60):
            for x in (box.lower[i], box.center[i], box.upper[i]):
                value = function(3 * mpf(float(x)))
                assert mpf(float(lower[i])) <= value <= mpf(float(upper[i]))


@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "Sin", "Cos", "Exp"])
def test_an_expansion_is_off_by_a_third_power(name: str) -> None:
    curve = {f.name: f for f in CURVES}[name]
    one, zero = torch.ones(1, 1).double(), torch.zeros(1).double()
    network = Network((Dense((0,), (one,), zero),), Dense((1,), (one,), zero), 1, (curve,))
    center = torch.full((1, 1), 0.7).double()
    errors = [float(carried(network, Box(center - r, center + r), 0)[1].error) for r in (0.01, 0.1)]
    assert 0 < 300 * errors[0] < errors[1] < 2e-3


def test_what_overflows_has_no_bounds() -> None:
    network = random_network(0, 1e160)
    lower, upper = bounds(network, random_boxes(0, 1.0))
    assert bool((lower[:, :2] == -torch.inf).all()) and bool((upper[:, :2] == torch.inf).all())


def energy(step: float) -> Network:
    """V(x + step f(x)) - V(x) for V = x' x and the stable f(x) = -x, as two sums of squares."""
    eye = torch.eye(3).double()
    first = Dense((0,), (torch.cat([(1 - step) * eye, eye]),), torch.zeros(6).double())
    signs = torch.cat([torch.ones(1, 3), -torch.ones(1, 3)], -1).double()
    return Network((first,), Dense((1,), (signs,), torch.zeros(1).double()), 3, (SQUARE,))


def test_what_cancels_in_the_second_order_is_not_lost() -> None:
    network = energy(0.01)
    box = Box(0.5 * torch.ones(1, 3).double(), 1.5 * torch.ones(1, 3).double())
    rows = -torch.ones(1, 1, 1).double()
    lines = root_bounds(network, box, budget=UNLIMITED).lines()
    assert float(backward(network, box, 1, rows, lines).least) < -0.5
    assert float(bounds(network, box)[1]) < -0.01


def test_values_that_share_a_relu_share_its_loss() -> None:
    """relu(x) (x + 3) - relu(x) (x + 2) is relu(x), between 0 and 1."""
    one, zero = torch.ones(1, 1).double(), torch.zeros(1).double()
    relu = Dense((0,), (one,), zero)
    of_x, of_relu = (torch.tensor([column]).double().T for column in ([0.0, 1, 1], [1.0, 0, 0]))
    factors = Dense((0, 1), (of_x, of_relu), torch.tensor([0.0, 3, 2]).double())
    product = Product(torch.tensor([0, 0]), torch.tensor([1, 2]))
    output = Dense((2,), (torch.tensor([[1.0, -1.0]]).double(),), zero)
    network = Network((relu, factors), output, 1, (RELU, product))
    box = Box(-one, one)
    low, high = bounds(network, box, 1)
    assert float(low) >= -0.5 - 1e-9 and float(high) <= 1 + 1e-9
    assert float(bounds(network, box, 0)[0]) < -1


def test_they_are_carried_for_few_inputs_with_products_in_float64_only() -> None:
    network = random_network(0)
    assert applies(network, 3, 7) and not applies(network, 2, 7) and not applies(network, 3, 6)
    plain = Network(network.layers[:2], network.layers[2], 3)
    assert not applies(plain, 3, 100)
    with pytest.raises(TypeError, match="float32"):
        SecondOrder(network.to("cpu", torch.float32), 4)
