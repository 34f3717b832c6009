"""The page that `fgp-vnn certify` writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.cli.main import main
from fgp_vnn.report.certify_page import certify_page
from fgp_vnn.report.point_page import AboutPoints
from tests.helpers.network_models import Builder
from tests.helpers.small_networks import random_network, save_onnx

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A network on 8x8 images, and eight points of which some have the true class."""
    model = save_onnx(random_network((64, 8, 3), 0), tmp_path / "net.onnx")
    x = np.random.default_rng(0).uniform(0, 1, (8, 64)).astype(np.float32)
    np.savez(tmp_path / "points.npz", x=x, y=np.arange(8) % 3)
    return ["certify", str(model), str(tmp_path / "points.npz"), "--epsilon", "0.3"]


def test_the_page_holds_the_numbers_and_the_pictures(command: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main([*command, "--report", str(page)]) == 0
    text = page.read_text()
    assert len(re.findall(r"<tr[^>]* data-results=", text)) == 8
    assert "fgp-vnn robustness of net.onnx" in text
    assert "verified robust accuracy" in text
    broken = len(re.findall(r'data-results="not_robust"', text))
    assert broken and f"{broken} of {broken} counterexample" in text
    assert text.count("data:image/png;base64,") == 3 * broken


def test_the_page_names_the_activations_of_the_network(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    hidden = builder.op("Sigmoid", builder.op("Gemm", "x", builder.random(4, 5)))
    last = builder.op("Gemm", hidden, builder.random(5, 2))
    model = builder.save(tmp_path / "net.onnx", last)
    np.save(tmp_path / "p.npy", np.zeros((1, 4)))
    page = tmp_path / "page.html"
    words = ["certify", str(model), str(tmp_path / "p.npy"), "--epsilon", "0.01", "--norm", "linf"]
    assert main([*words, "--report", str(page)]) == 0
    assert "Sigmoid" in page.read_text() and "ReLU" not in page.read_text()


def test_the_page_is_made_again_from_a_finished_file(command: list[str], tmp_path: Path) -> None:
    output = ["--output", str(tmp_path / "out.csv")]
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    assert main([*command, *output, "--report", str(first)]) == 0
    assert main([*command, *output, "--resume", "--report", str(second)]) == 0
    assert first.read_text() == second.read_text()


@pytest.mark.parametrize(
    ("name", "message"), [("page.txt", "a page is written as"), ("no/page.html", "does not exist")]
)
def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    command: list[str], capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    assert main([*command, "--report", name]) == 2
    out, err = capsys.readouterr()
    assert (out, message in err) == ("", True)


def test_the_page_says_what_the_attack_on_an_undecided_point_found(
    command: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert main([*command, "--engine", "bounds", "--report", str(page)]) == 0
    text = page.read_text()
    attacked = re.findall(r'data-label="attack on undecided"><div>([^<\n]*)', text)
    statuses = re.findall(r'data-results="(\w+)"', text)
    assert len(attacked) == len(statuses) == 8 and "unknown" in statuses
    for found, status in zip(attacked, statuses, strict=True):
        assert found in (("broken", "stands") if status == "unknown" else ("-",))
    assert "Attack on undecided: a point that was not decided" in text


def test_names_cannot_run_in_the_page() -> None:
    row = {"point": 0, "label": 1, "status": "unknown", "seconds": 0.1, "reason": HOSTILE}
    counts = {"points": 1, "robust": 0, "not_robust": 0, "unknown": 1, "timeout": 0}
    about = AboutPoints({"file": HOSTILE}, {}, [])
    assert HOSTILE not in certify_page(about, [row], counts | {"median_seconds": 0.1})
