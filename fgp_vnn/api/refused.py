"""`verify` for networks that cannot be verified: an attack still looks for a counterexample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from fgp_vnn.api.cases import check_sizes, compares_only, join_verdicts
from fgp_vnn.api.written import onnx_of
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.attack_only import AttackProblem
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.onnx.opaque import Opaque, load_opaque
from fgp_vnn.property import Property

Refused = UnsupportedError | OutOfMemoryError


def attack_refused(
    model: Any, prop: Property, settings: Settings, budget: Budget, refused: Refused
) -> Verdict:
    """The verdict on a network that can be run and nothing else: `sat`, or `unknown`. It is that of
    a model, or of two files.

    Each case gets an even share of the time that is left. Where memory was short and nothing is
    found, that stays the answer; `refused` is raised as well where the network cannot be run, and
    where attacks are off.
    """
    if not settings.attack:
        raise refused
    program = check_program(model, prop, refused)
    if not compares_only(prop):
        program = program.with_softmax()
    budget = budget.share(1)  # it ends also where no limit is given
    verdicts: list[Verdict] = []
    for number, case in enumerate(prop.cases):
        problem = AttackProblem(
            program,
            program.outputs,
            Box(torch.from_numpy(case.lower), torch.from_numpy(case.upper)),
            case.unsafe,
            Judge(case.lower, case.upper, program.runtime.run, prop.broken_by),
            settings,
            budget.share(1 / (len(prop.cases) - number)),
            str(refused).partition("; supported: ")[0],  # without the list of all operators
        )
        verdicts.append(run(problem, "attack only"))
        if verdicts[-1].status == "sat" or budget.expired():
            break
    verdict = join_verdicts(verdicts)
    if verdict.status != "sat" and isinstance(refused, OutOfMemoryError):
        raise refused
    return verdict


def check_program(model: Any, prop: Property, refused: Refused) -> Opaque:
    """The program of a network that is refused, a model or the first of two files, if it can be
    run; else `refused` is raised."""
    files = isinstance(model, tuple)
    program = program_of(model[0] if files else model, refused)
    names = map(str, model) if files else ("the model", "the property")
    check_sizes(program.inputs, program.outputs, prop, *names)
    return program


def program_of(model: Any, refused: Refused) -> Opaque:
    """The program of a model that is refused, if it can be run; else `refused` is raised."""
    try:
        if isinstance(model, (str, Path)):
            return load_opaque(model)
        return load_opaque(onnx_of(model).SerializeToString())
    except InputError:
        raise refused from None
