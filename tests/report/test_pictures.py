from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from fgp_vnn.bench.comparison import read_comparison
from fgp_vnn.bench.instances import read_benchmark
from fgp_vnn.property.model import Case
from fgp_vnn.report.pictures import (
    ImageLayout,
    counterexample_picture,
    draw,
    image_layout,
    nominal_input,
)
from tests.report.runs import SIDE, make_comparison


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((1, 784), ImageLayout(28, 28, 1)),
        ((1, 1, 28, 28), ImageLayout(28, 28, 1)),
        ((1, 784, 1), ImageLayout(28, 28, 1)),
        ((1, 3072), ImageLayout(32, 32, 3)),
        ((1, 3, 32, 32), ImageLayout(32, 32, 3)),
        ((1, 32, 32, 3), ImageLayout(32, 32, 3, channels_last=True)),
        ((1, 64, 64), ImageLayout(64, 64, 1)),
        ((1, 20, 30), ImageLayout(20, 30, 1)),
        ((5,), None),
        ((1, 1, 8, 8), ImageLayout(8, 8, 1)),
        ((1, 64), ImageLayout(8, 8, 1)),
        ((1, 49), None),
        ((1, 3, 480, 640), ImageLayout(480, 640, 3)),
        ((1, 480, 640, 3), ImageLayout(480, 640, 3, channels_last=True)),
        ((1, 1, 5, 9), ImageLayout(5, 9, 1)),
        ((1, 6, 20, 30), ImageLayout(20, 30, 6)),
        ((1, 20, 30, 2), ImageLayout(20, 30, 2, channels_last=True)),
        ((1, 785), None),
        ((1, 3, 2, 2), None),
        ((2, 3, 4, 5), None),
    ],
)
def test_an_input_looks_like_an_image_by_its_shape(
    shape: tuple[int, ...], layout: ImageLayout | None
) -> None:
    assert image_layout(shape, int(np.prod(shape))) == layout


def test_channels_come_last_in_a_picture() -> None:
    x = np.arange(12.0)
    first = ImageLayout(2, 2, 3).pixels(x)
    assert first[0, 1].tolist() == [1, 5, 9]
    last = ImageLayout(2, 2, 3, channels_last=True).pixels(x)
    assert last[0, 1].tolist() == [3, 4, 5]


def decoded(source: str) -> NDArray[np.uint8]:
    """The pixels [height, width, channels] of an image in a `data:` URL."""
    data = base64.b64decode(source.removeprefix("data:image/png;base64,"))
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    return pixels.reshape(*pixels.shape[:2], -1)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_holds_its_input(channels: int) -> None:
    layout = ImageLayout(5, 7, channels, channels_last=True)
    original, found = np.random.default_rng(1).integers(0, 256, (2, 35 * channels)) / 1.0
    drawn = draw("", "", layout, (original, found), (0.0, 255.0))
    assert (decoded(drawn.original) == layout.pixels(original)).all()
    assert (decoded(drawn.counterexample) == layout.pixels(found)).all()


def test_channels_that_are_no_colours_are_shown_by_their_mean() -> None:
    inputs = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    drawn = draw("", "", ImageLayout(1, 1, 2), inputs, (0.0, 1.0))
    assert decoded(drawn.original).tolist() == [[[128]]]
    assert decoded(drawn.counterexample).tolist() == [[[255]]]


def test_a_large_image_is_reduced_in_its_proportions() -> None:
    inputs = np.zeros(640 * 960), np.ones(640 * 960)
    drawn = draw("", "", ImageLayout(640, 960, 1), inputs, (0.0, 1.0))
    assert decoded(drawn.counterexample).shape == (213, 320, 1)


def test_the_difference_is_blue_where_the_value_fell_and_red_where_it_rose() -> None:
    before, after = np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.5])
    drawn = draw("", "", ImageLayout(1, 3, 1), (before, after), (0.0, 1.0))
    fell, rose, stayed = decoded(drawn.difference)[0].astype(int)
    assert fell[2] > fell[0] and rose[0] > rose[2]
    assert stayed.tolist() == [255, 255, 255]


def test_the_original_is_found_where_the_box_was_cut_at_the_range() -> None:
    original = np.array([0.0, 0.02, 0.5, 0.97, 1.0])
    case = Case(np.clip(original - 0.1, 0, 1), np.clip(original + 0.1, 0, 1), ())
    assert nominal_input(case) == pytest.approx(original)


def test_a_fixed_input_stays_where_it_is() -> None:
    case = Case(np.array([0.3, 0.0]), np.array([0.3, 1.0]), ())
    assert nominal_input(case).tolist() == [0.3, 0.5]


def test_a_counterexample_becomes_three_images_and_a_sentence(tmp_path: Path) -> None:
    out = make_comparison(tmp_path)
    (instance,) = read_benchmark(tmp_path / "images").instances
    record = read_comparison(out).runs["ours"][instance.key]
    drawn = counterexample_picture("one", out / "ours" / record.counterexample, instance)
    assert drawn is not None
    assert drawn.caption.startswith("largest change 0.1 of 0.2; largest output 0 before, 3 after")
    for source in (drawn.original, drawn.counterexample, drawn.difference):
        assert decoded(source).shape[:2] == (SIDE, SIDE)
