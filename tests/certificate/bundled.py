"""Certificates of bundled instances, for the tests of the checker."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import fgp_vnn
from fgp_vnn.base.files import read_bytes
from fgp_vnn.certificate.checker.proof import Certificate
from tests.helpers.places import BENCHMARK

with (BENCHMARK / "ground_truth.csv").open() as file:
    TRUTH = [(row["onnx"], row["vnnlib"], row["result"]) for row in csv.DictReader(file)]
SAT = [(model, prop) for model, prop, result in TRUTH if result == "sat"]
DEEP = ("onnx/conv_deep_pgd.onnx", "vnnlib/conv_deep_pgd_untargeted_0.08.vnnlib")
PROVED = [
    ("onnx/conv_small_standard.onnx", "vnnlib/conv_small_standard_two_boxes_0.03.vnnlib"),
    ("onnx/dense_24x3_standard.onnx", "vnnlib/dense_24x3_standard_conjunction_0.08.vnnlib"),
    ("onnx/dense_20x6_pgd.onnx", "vnnlib/dense_20x6_pgd_untargeted_0.04.vnnlib"),
    ("onnx/dense_48x3_mmr.onnx", "vnnlib/dense_48x3_mmr_targeted_0.05.vnnlib"),
    DEEP,
]


def contents(model: str | Path, prop: str | Path) -> tuple[bytes, bytes]:
    return read_bytes(BENCHMARK / model, "network"), read_bytes(BENCHMARK / prop, "property")


def certified(model: str | Path, prop: str | Path, path: Path, **settings: Any) -> bytes:
    """The certificate of an instance that is unsat."""
    files = BENCHMARK / model, BENCHMARK / prop
    verdict = fgp_vnn.verify(*files, timeout=120, certificate=path, **settings)
    assert (verdict.status, verdict.certificate) == ("unsat", str(path)), verdict.reason
    assert not verdict.reason
    return path.read_bytes()


@cache
def deep() -> bytes:
    """A certificate with lemmas and trees of neurons."""
    with tempfile.TemporaryDirectory() as folder:
        return certified(*DEEP, Path(folder) / "proof.npz")


def changed(
    certificate: Certificate, index: int, name: str, change: Callable[[Any], Any]
) -> Certificate:
    """The certificate with one array changed."""
    steps = list(certificate.steps)
    arrays = steps[index].arrays | {name: change(steps[index].arrays[name].copy())}
    steps[index] = replace(steps[index], arrays=arrays)
    return replace(certificate, steps=tuple(steps))
