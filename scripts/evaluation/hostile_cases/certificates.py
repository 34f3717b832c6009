"""Forged, damaged or unrelated certificates for claims that are false."""

from __future__ import annotations

import csv
import hashlib
import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from hostile_cases.branches import PAIRS, pairs
from hostile_cases.case import Case, box_property
from hostile_cases.exact import ExactNetwork, rational
from hostile_cases.forging import Arrays, forged, stamped, unpack
from hostile_cases.magnitudes import DEEP, chain
from hostile_cases.networks import Redraw
from hostile_cases.oracle import Oracle, shown
from hostile_cases.tool import Tool
from hostile_cases.trials import Trial
from tests.helpers.network_models import Builder

Claim = tuple[bytes, bytes]  # network and property
Prove = Callable[[Path, Path, Path], bool]
SHAPES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (1, (2, 1)), (1, (1,)), (2, (3, 1)), (1, (3, 2, 1)), (2, (2, 2, 2)), (1, (1,) * DEEP),
    (1, (2, 2, 2, 1)), (1, (2,) * PAIRS + (1,)),
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[3]
OVERFLOWING = SHAPES.index((1, (2, 2, 2, 1)))
BENCHMARK = ROOT / "vnncomp" / "benchmark"
BUNDLED = ("dense_16x2_standard", "dense_24x3_pgd")
MOST = 2 << 20  # kilobytes of memory


def attempt(random: np.random.Generator, tool: Tool, folder: Path) -> Iterator[Trial]:
    """Change a valid certificate, stamp it for a false claim, and let the checker judge it."""
    if random.random() < 0.2:
        name = str(random.choice(BUNDLED))
        true, arrays = bundled(name, tool.prove)
        claims = false_claims(name)
        claim, why = claims[int(random.integers(len(claims)))], "the ground truth is sat"
    else:
        index = int(random.integers(len(SHAPES)))
        true, arrays = small(index, bool(random.integers(2)), tool.prove)
        claim, why = _false(random, index)
    data = forged(random, stamped(arrays, digests(true), digests(claim)))
    paths = [folder / name for name in ("certificate.npz", "model.onnx", "prop.vnnlib")]
    files = {path.name: part for path, part in zip(paths, (data, *claim), strict=True)}
    for path in paths:
        path.write_bytes(files[path.name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = tool.check(*paths)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fault = answer.reason if answer.status == "crash" else ""
    if answer.status == "accepted":
        fault = f"accepted, but {why}"
    elif after > MOST > before:
        fault = f"the check took {after >> 10} megabytes"
    command = "fgp-vnn check-certificate certificate.npz model.onnx prop.vnnlib"
    yield Trial("checker", answer.status, fault, command, files)


def digests(claim: Claim) -> tuple[str, str]:
    network, prop = (hashlib.sha256(part).hexdigest() for part in claim)
    return network, prop


def _false(random: np.random.Generator, index: int) -> tuple[Claim, str]:
    """A network of the same shape with hostile numbers, and a property that it breaks."""
    inputs, widths = SHAPES[index]
    if index == OVERFLOWING and random.random() < 0.4:
        case = overflowing(random)
    elif widths[:-1] in (((2,) * 3), (2,) * PAIRS) and random.random() < 0.8:
        case = pairs(random, inputs, len(widths) - 1, rows=1)
    elif len(widths) == 1:  # of any depth, without a ReLU
        case = chain(random, inputs, [1] * int(random.integers(1, DEEP)), relus=0, rows=1)
    else:
        case = chain(random, inputs, list(widths), rows=1)
    found = Oracle(case).real
    if found is None:
        raise Redraw("the claim may be true")
    return (case.network, case.property), f"in real arithmetic {shown(*found)}"


def overflowing(random: np.random.Generator) -> Case:
    """y = relu(b - relu(1 + relu(1 + x))) - c is below 0 at the end of the box. Its factor is so
    large that the factor times b is infinite, while the terms subtracted layer by layer are not."""
    end, least = float(random.uniform(0.1, 0.3)), float(random.uniform(0.01, 0.1))
    top = 2 + end + least
    below = least + end * 10.0 ** random.uniform(-3, -1)
    factor = float(np.finfo(np.float64).max) / top * random.uniform(1.02, 1.2)
    builder, at, unit = Builder([1, 1]), "x", np.array([[1.0, 0.0], [0.0, 0.0]])
    layers = ((unit[:1], 1.0), (unit, 1.0), (-unit, top))
    for weight, bias in layers:
        offset = builder.const(np.array([bias, 0.0]))
        at = builder.op("Relu", builder.op("Gemm", at, builder.const(weight), offset))
    at = builder.op("Gemm", at, builder.const(unit[:, :1]), builder.const(np.array([-below])))
    network = builder.model(at).SerializeToString()
    prop = box_property([0.0], [end], 1, f"(<= (* {factor!r} Y_0) 0.0)")
    return Case("overflowing", network, prop, ((0.0,), (end,)))


@cache
def small(index: int, close: bool, prove: Prove) -> tuple[Claim, Arrays]:
    """A claim about a plain network, with a limit far away or close, and its proof."""
    inputs, widths = SHAPES[index]
    random = np.random.default_rng(index)
    builder, at, before = Builder([1, inputs]), "x", inputs
    for k, after in enumerate(widths):
        weight = builder.const(random.normal(size=(before, after)))
        at = builder.op("Gemm", at, weight, builder.const(random.normal(size=after)))
        at = builder.op("Relu", at) if k < len(widths) - 1 else at
        before = after
    network = builder.model(at).SerializeToString()
    limit = 1000.0
    if close and inputs == 1:
        ends = ([v] for v in (-1.0, 1.0))
        knots = ExactNetwork(network).knots(*(rational(end) for end in ends))
        limit = max(float(y[0]) for _, y in knots) + 1e-3
    prop = box_property([-1.0] * inputs, [1.0] * inputs, widths[-1], f"(>= Y_0 {limit!r})")
    return _proved((network, prop), prove)


@cache
def bundled(name: str, prove: Prove) -> tuple[Claim, Arrays]:
    """An unsat instance of the bundled benchmark, and its proof."""
    return _proved(_instances(name, "unsat")[-1], prove)


@cache
def false_claims(name: str) -> list[Claim]:
    return _instances(name, "sat")


def _instances(name: str, result: str) -> list[Claim]:
    with (BENCHMARK / "ground_truth.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["result"] == result]
    return [
        ((BENCHMARK / row["onnx"]).read_bytes(), (BENCHMARK / row["vnnlib"]).read_bytes())
        for row in rows
        if Path(row["onnx"]).stem == name
    ]


def _proved(claim: Claim, prove: Prove) -> tuple[Claim, Arrays]:
    with tempfile.TemporaryDirectory() as name:
        model, prop, proof = (Path(name) / part for part in ("m.onnx", "p.vnnlib", "c.npz"))
        model.write_bytes(claim[0])
        prop.write_bytes(claim[1])
        if not prove(proof, model, prop):
            raise RuntimeError("there is no certificate of a claim that is true")
        return claim, unpack(proof.read_bytes())
