"""Results to look at."""

from __future__ import annotations

import base64
import io
import logging
import re

import numpy as np
import pytest
from PIL import Image

import fgp_vnn
from fgp_vnn.base.images import png
from fgp_vnn.base.radius import Radius
from fgp_vnn.base.results import Results
from fgp_vnn.base.robustness import Robustness
from fgp_vnn.base.story import LOG, Stage, Teller, listening, tell
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.property.model import Case, Property


def broken(shape: tuple[int, ...]) -> Robustness:
    x = np.linspace(0, 1, int(np.prod(shape))).reshape(shape).astype(np.float32)
    found = Counterexample(x[::-1].copy(), np.array([0.0, 1.0], dtype=np.float32))
    return Robustness("not_robust", 0, found, "attack", input=x)


@pytest.mark.parametrize(
    "shape", [(8, 8), (1, 8, 8), (3, 16, 16), (1, 3, 8, 8), (64,), (16, 16, 3)]
)
def test_images_of_any_size_are_drawn(
    shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    result = broken(shape)
    found = re.findall(r"data:image/png;base64,([^']+)'", result._repr_html_())
    assert len(found) == 3
    for data in found:
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        assert image.size == ((16, 16) if 16 in shape else (8, 8))
    result.show()
    assert "\u2580" in capsys.readouterr().out


def test_what_is_no_image_is_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    result = broken((5,))
    assert "<img" not in result._repr_html_() and len(repr(result)) < 100
    result.show()
    assert "not robust by attack" in capsys.readouterr().out


def test_a_png_holds_the_pixels_it_is_given() -> None:
    pixels = np.random.default_rng(0).uniform(0, 1, (5, 7, 3))
    image = np.asarray(Image.open(io.BytesIO(png(pixels))))
    assert (image == (pixels * 255).round()).all()


def test_lists_of_results_are_short_and_become_plain_values() -> None:
    results = Results([broken((8, 8))] * 30)
    assert len(repr(results).splitlines()) < 15
    assert results.to_dicts()[0]["counterexample"]["label"] == 1
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(fgp_vnn.InputError, match="pip install pandas"):
            results.to_frame()
    else:
        assert len(results.to_frame()) == 30


def test_a_story_is_heard_only_where_somebody_listens() -> None:
    heard: list[Stage] = []
    assert not Teller().due()
    with listening(heard.append):
        assert Teller().due()
        tell(Stage("split", 3, -0.5, 10.0))
        tell(Stage("bound"), logging.INFO)
    tell(Stage("bound"))
    assert [str(stage) for stage in heard] == [
        "split, 3 open, lowest bound -0.5, 10 s left",
        "bound",
    ]
    assert LOG.level == logging.NOTSET


def test_a_list_counts_its_answers_in_words() -> None:
    radii = [Radius(0.5, 0.501, 0, ended="tight"), Radius(0.1, 1.0, 0, ended="timeout")]
    assert Results(radii).summary() == "2 results: 1 tight, 1 timeout"
    assert Results([broken((8, 8))]).summary() == "1 result: 1 not robust"


def test_a_property_says_its_size_in_a_line() -> None:
    box = Case(np.zeros(64), np.ones(64), ())
    assert repr(Property((box,), 64, 1)) == "Property(64 inputs, 1 output, 1 case)"


def test_a_program_that_has_a_kernel_loaded_and_is_none_draws_on_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("ipykernel", reason="needs pip install ipykernel")
    broken((8, 8)).show()
    assert "\u2580" in capsys.readouterr().out
