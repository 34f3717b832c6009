"""`verify` for networks that cannot be verified: an attack may still find a counterexample."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.api.cases import check_sizes, compares_only, join_verdicts
from fgp_vnn.api.written import onnx_of
from fgp_vnn.attack.black_box import Aim, falsify_program
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.many import box_of
from fgp_vnn.engine.run import tell_stage
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.onnx.opaque import Opaque, load_opaque
from fgp_vnn.property import Property
from fgp_vnn.property.model import Case
from fgp_vnn.query import ask_of_outputs
from fgp_vnn.strategy import Strategy

Refused = UnsupportedError | OutOfMemoryError


def attack_refused(
    model: Any, prop: Property, settings: Settings, budget: Budget, refused: Refused
) -> Verdict:
    """Attack a network that can be run but not verified; the verdict is `sat` or `unknown`.

    `model` is a model or a pair of files (network, property), and `refused` is the error that
    prevents its verification. The remaining time is divided evenly among the cases. Raises
    `refused` if attacks are off, if the network cannot be run, or if it is an OutOfMemoryError and
    no counterexample is found.
    """
    if not settings.attack:
        raise refused
    program = check_program(model, prop, refused)
    if not compares_only(prop):
        program = program.with_softmax()
    budget = budget.share(1)  # finite, even if the user gave no timeout
    verdicts: list[Verdict] = []
    for number, case in enumerate(prop.cases):
        judge = Judge(*case.ends(), program.runtime.run, prop.broken_by)
        share = budget.share(1 / (len(prop.cases) - number))
        verdicts.append(_attacked(program, case, judge, share, settings.seed, refused))
        if verdicts[-1].status == "sat" or budget.expired():
            break
    verdict = join_verdicts(verdicts)
    if verdict.status != "sat" and isinstance(refused, OutOfMemoryError):
        raise refused
    return verdict


def _attacked(
    program: Opaque, case: Case, judge: Judge, budget: Budget, seed: int, refused: Refused
) -> Verdict:
    """`sat` with a counterexample, or `unknown` with the reason why there was only an attack."""
    begin, unsafe = time.perf_counter(), ask_of_outputs(program.outputs, case.unsafe)
    aim = Aim(program, unsafe, box_of(case), judge, Strategy().attack.blind)
    tell_stage("attack program", budget)
    with torch.no_grad():
        found = falsify_program(aim, budget, seed) if case.unsafe else None
    seconds = {"attack": time.perf_counter() - begin}
    verdict = Verdict("sat", "attack", found, seconds=seconds)
    if found is None:
        reason = f"only attacked, and no counterexample was found: {refused}"
        verdict = Verdict("unknown", reason=reason, seconds=seconds)
    tell_stage(verdict.status, budget)
    return verdict


def check_program(model: Any, prop: Property, refused: Refused) -> Opaque:
    """The program of a model or of a pair of files (network, property); raises `refused` if it
    cannot be run, and InputError if the property does not fit."""
    files = isinstance(model, tuple)
    program = program_of(model[0] if files else model, refused)
    names = map(str, model) if files else ("the model", "the property")
    check_sizes(program.inputs, program.outputs, prop, *names)
    return program


def program_of(model: Any, refused: Refused) -> Opaque:
    """The program of a model that cannot be verified; raises `refused` if it cannot be run."""
    try:
        if isinstance(model, (str, Path)):
            return load_opaque(model)
        return load_opaque(onnx_of(model).SerializeToString())
    except InputError:
        raise refused from None
