"""Split rules: a file is a rule, whatever it chooses is sound, and a wrong name is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fgp_vnn.base.errors import InputError
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import ask
from fgp_vnn.search import input_rules, neuron_rules
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.search.rules import find_rule, names_of
from fgp_vnn.strategy import Inputs, Neurons, Strategy
from tests.helpers.random_cases import exact_confirm, random_case, wrong
from tests.helpers.solving import search_neurons
from tests.helpers.ticking import Ticking


@pytest.mark.parametrize("rule", names_of(neuron_rules))
def test_neurons_split_by_any_rule_agree_with_the_exact_oracle(rule: str) -> None:
    how, decided = Strategy(neurons=Neurons(rule=rule, batch=8)), 0
    for seed in range(5):
        query, truth = random_case(seed).query, random_case(seed).truth
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        outcome = search_neurons(query, bounds, exact_confirm(query), Ticking(300), how)
        assert not wrong(outcome.status, truth)
        decided += outcome.status in ("sat", "unsat")
    assert decided >= 5


@pytest.mark.parametrize("rule", names_of(input_rules))
def test_inputs_split_by_any_rule_agree_with_the_exact_oracle(rule: str) -> None:
    how, decided = Subdivision(strategy=Strategy(inputs=Inputs(rule=rule, batch=64))), 0
    for seed in range(5):
        case = random_case(seed)
        if not isinstance(case.query.domain, Box):
            continue
        outcome = split_inputs(case.query, exact_confirm(case.query), Ticking(60), how)
        assert not wrong(outcome.status, case.truth)
        decided += outcome.status in ("sat", "unsat")
    assert decided >= 2


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_a_neuron_that_does_not_move_near_the_centre_says_nothing_about_where_to_split(
    noise: float,
) -> None:
    """Of two neurons one loses much, but its slopes at the centre are 0 or noise."""
    weight = torch.tensor([[0.1, 0.0], [0.0, noise]]).double()
    first = Dense((0,), (weight,), torch.zeros(2).double())
    last = Dense((1,), (-torch.ones(1, 2).double(),), torch.zeros(1).double())
    network = Network((first,), last, 2)
    box = Box(-torch.ones(1, 2).double(), torch.ones(1, 2).double())
    query = ask(
        network,
        Box(box.lower[0], box.upper[0]),
        [Conjunction(np.eye(1), np.zeros(1), np.zeros(1, bool))],
    )
    far = torch.tensor([[0.1, 5.0]]).double()
    bounds = LayerBounds((-far,), (far,))
    rows = torch.ones(1, 1, 1).double()
    passed = backward(network, box, 1, rows, bounds.lines())
    pull = find_rule(input_rules, "loss")(query, box, bounds, passed, rows[0], Inputs())
    assert int(pull.argmax(-1)) == 0


def test_the_usual_rules_have_files() -> None:
    assert Neurons().rule in names_of(neuron_rules)
    assert Inputs().rule in names_of(input_rules)


def test_a_file_that_is_put_into_a_folder_is_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_rules").mkdir()
    (tmp_path / "some_rules" / "__init__.py").touch()
    (tmp_path / "some_rules" / "mine.py").write_text("RULE = len\n")
    monkeypatch.syspath_prepend(tmp_path)
    import some_rules  # type: ignore[import-not-found]

    assert names_of(some_rules) == ("mine",) and find_rule(some_rules, "mine") is len
    monkeypatch.delitem(sys.modules, "some_rules")


def test_a_rule_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"'luck'.*gain, height"):
        find_rule(neuron_rules, "luck")
