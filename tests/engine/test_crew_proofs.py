"""The proof of a search that several processes did is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fgp_vnn.api.boxes import BoxProblems
from fgp_vnn.budget.budget import Budget
from fgp_vnn.certificate.checker.check import check_files
from fgp_vnn.certificate.prove import prove
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.onnx.load import load_network
from fgp_vnn.property import load_property
from fgp_vnn.strategy import Inputs, Neurons, Sharing, Strategy
from tests.helpers.children import children
from tests.helpers.command_line import box
from tests.helpers.small_networks import random_network, save_onnx
from tests.helpers.solving import solve_boxes

FEW = Neurons(batch=4)
SHARED = Strategy(
    inputs=Inputs(batch=4),
    neurons=FEW,
    short=FEW,
    crew=Sharing(alone=(0.0, 0.0), turn=0.0, least_work=0.0),
)


@pytest.mark.parametrize("inputs", [3, 20])
def test_proofs_of_several_processes_are_whole(
    inputs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crews: list[Crew] = []

    class Seen(Crew):
        def __enter__(self) -> Crew:
            crews.append(self)
            return super().__enter__()

    monkeypatch.setattr("fgp_vnn.engine.parallel.share.Crew", Seen)
    monkeypatch.setattr("fgp_vnn.engine.parallel.share.can_fork", lambda: True)
    monkeypatch.setattr("fgp_vnn.engine.problem.can_fork", lambda: True)
    widths, reach = ((24, 24), 3.0) if inputs == 3 else ((10, 10), 0.2)
    network = random_network((inputs, *widths, 2), 1)
    model = save_onnx(network, tmp_path / "net.onnx")
    points = reach * (2 * torch.rand(4000, inputs, dtype=torch.float64) - 1)
    y = network(torch.cat([points, reach * points.sign()]))[:, 0]
    most, size = float(y.max()), float(y.max() - y.min())
    for above in (0.05, 0.1, 0.2, 0.4, 0.8):
        prop = tmp_path / "prop.vnnlib"
        prop.write_text(box([(-reach, reach)] * inputs, 2, f"(>= Y_0 {most + above * size})"))
        loaded, asked = load_network(model), load_property(prop)
        settings = Settings(jobs=2, attack=False, engine="split")
        boxes = BoxProblems(settings, proof=True, strategy=SHARED)
        verdict = solve_boxes(boxes, loaded, asked, Budget.of(20, None))
        if verdict.status == "unsat":
            steps = [step for log in boxes.logs for step in log.steps]
            data, _ = prove(steps, model.read_bytes(), prop.read_bytes(), asked, lambda: None)
            assert check_files(data, model.read_bytes(), prop.read_bytes()).leaves >= 1
            if crews:
                break
    else:
        raise AssertionError("no proof of several processes")
    assert not children()
