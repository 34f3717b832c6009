"""What a search leaves in a log, against what the checker makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.certificate.checker.bounds import Enclosure
from fgp_vnn.certificate.checker.check import Checked, check_files, check_lemma
from fgp_vnn.certificate.checker.network import read_network
from fgp_vnn.certificate.checker.proof import ProofStep
from fgp_vnn.certificate.prove import typed
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.proof_log import ProofLog
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.strategy import Slopes, Strategy
from tests.helpers.small_networks import random_network, save_onnx

SLOPES = Slopes().storable()


def question(seed: int) -> Query:
    network = random_network((20, 10, 8, 8, 2), seed)
    row = Conjunction(np.array([[-1.0, 0.0]]), np.array([-9.0]), np.array([False]))
    center = torch.full((20,), 0.5, dtype=torch.float64)
    return ask(network, Box(center - 0.2, center + 0.2), [row])


def learnt(query: Query, steps: list[ProofStep], folder: Path) -> Enclosure:
    """What the checker knows after the steps of a log."""
    network = read_network(save_onnx(replace_output(query), folder / "net.onnx").read_bytes())
    box = query.domain.box()
    enclosure = Enclosure(network, box.lower.numpy()[None], box.upper.numpy()[None])
    checked = Checked(lambda: None)
    for step in steps:
        check_lemma(enclosure, typed(step), checked)
    assert checked.lemmas == sum(len(step.arrays["neurons"]) for step in steps)
    return enclosure


def replace_output(query: Query) -> fgp_vnn.network.model.Network:
    """The network without the rows of the query."""
    inner = query.network.output
    return replace(query.network, output=getattr(inner, "inner", inner))


def assert_found(enclosure: Enclosure, bounds: LayerBounds) -> None:
    """Where signs are open, the checker's bounds are no looser than the verifier's, but for
    rounding; they can be tighter, since it bounds neurons that are on as well."""
    for k, crossing in enumerate(bounds.unstable()):
        open_ = crossing[0].numpy()
        lower, upper = bounds.lower[k][0].numpy(), bounds.upper[k][0].numpy()
        assert (enclosure.lower[k][0] >= lower - 1e-8)[open_].all()
        assert (enclosure.upper[k][0] <= upper + 1e-8)[open_].all()


@pytest.mark.parametrize("seed", range(2))
def test_refined_and_sharpened_bounds_are_found_again_by_the_checker(
    seed: int, tmp_path: Path
) -> None:
    query = question(seed)
    log = ProofLog(query, 0)
    with torch.no_grad():
        plain = root_bounds(query.network, query.domain, budget=UNLIMITED)
        refined = refine_layers(query, plain, SLOPES, UNLIMITED, log.refined)
        storable = Strategy(slopes=Slopes().storable())
        sharper = sharpen_layers(query, refined, Turn(6), UNLIMITED, storable, log.sharpened)
    assert_found(learnt(query, [], tmp_path), plain)
    assert_found(learnt(query, log.steps, tmp_path), sharper)
    width = [
        sum(float((u - lo).sum()) for lo, u in zip(b.lower, b.upper, strict=True))
        for b in (plain, refined, sharper)
    ]
    assert width[2] < width[1] < width[0]
    assert any((step.arrays["tree"] >= 0).any() for step in log.steps)


def write_property(path: Path, inputs: int, limit: float) -> Path:
    """The box [0.3, 0.7]^n and the unsafe set Y_0 >= limit."""
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += ["(declare-const Y_0 Real)", "(declare-const Y_1 Real)"]
    lines += [f"(assert (>= X_{i} 0.3)) (assert (<= X_{i} 0.7))" for i in range(inputs)]
    path.write_text("\n".join([*lines, f"(assert (>= Y_0 {limit!r}))"]))
    return path


@pytest.mark.parametrize("inputs", [3, 20])
@pytest.mark.parametrize("seed", range(2))
def test_searches_on_random_networks_leave_proofs(seed: int, inputs: int, tmp_path: Path) -> None:
    network = random_network((inputs, 10, 10, 2), seed)
    model = save_onnx(network, tmp_path / "net.onnx")
    points = 0.3 + 0.4 * torch.rand(4000, inputs, dtype=torch.float64)
    corners = torch.where(torch.rand(4000, inputs) < 0.5, 0.3, 0.7).double()
    most = float(network(torch.cat([points, corners]))[:, 0].max())
    proved = 0
    for above in (0.3, 1.0):
        prop = write_property(tmp_path / "prop.vnnlib", inputs, most + above)
        path = tmp_path / "proof.npz"
        verdict = fgp_vnn.verify(model, prop, timeout=60, certificate=path)
        if verdict.status == "unsat":
            assert verdict.certificate, verdict.reason
            checked = check_files(path.read_bytes(), model.read_bytes(), prop.read_bytes())
            assert checked.leaves >= 1
            proved += 1
    assert proved
