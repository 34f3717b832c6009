import torch

from fgp_vnn.base.draws import Draws


def test_the_same_seeds_draw_the_same_numbers_and_others_draw_others() -> None:
    first, again, other, longer = (Draws(*seeds).uniform(3, 5) for seeds in [[1], [1], [2], [1, 2]])
    assert torch.equal(first, again)
    assert not (first == other).any()
    assert not (first == longer).any()


def test_numbers_have_their_distribution() -> None:
    draws = Draws(0)
    uniform, normal = draws.uniform(100, 200), draws.normal(100, 200)
    assert uniform.dtype == normal.dtype == torch.float64
    assert 0 <= uniform.min() < 0.01 < 0.99 < uniform.max() < 1
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    indices = draws.indices(7, 1000)
    assert set(indices.tolist()) == set(range(7))
