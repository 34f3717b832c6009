"""`verify`: an ONNX network and a VNN-LIB property in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fgp_vnn.api.opening import load_asked
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.errors import InputError, UnsupportedError, memory_errors
from fgp_vnn.base.files import read_bytes, write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.story import Stage, listening
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog, ProofLog
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings, check_certificate, make_settings
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.network.onnx.deployed import Deployment, read_deployment
from fgp_vnn.property import Property, load_property
from fgp_vnn.property.conditions import Condition, property_of
from fgp_vnn.property.write import format_property
from fgp_vnn.query import Query, ask
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.float32 import deployed, received

# A property, or conditions on inputs and outputs.
Given = tuple[str | Path | Property | None, Condition | None, Condition | None]


def verify(
    model: Any,
    prop: str | Path | Property | None = None,
    *,
    inputs: Condition | None = None,
    unsafe: Condition | None = None,
    timeout: float | None = None,
    certificate: str | Path | None = None,
    progress: Callable[[Stage], None] | None = None,
    **settings: Any,
) -> Verdict:
    """Decide whether a network can break a property; settings are the fields of `Settings`.

    The property is a VNN-LIB file, a `Property`, or two conditions on the `variables` of the model:
    which inputs are meant, and which outputs are unsafe. The model is an ONNX file, a loaded
    network or a torch module.

    The proof of an `unsat` is written to the file `certificate`, if one is given; where that cannot
    be done, the verdict's `certificate` stays empty and its `reason` says why. `progress` is called
    with a `Stage` at each step, and a few times a second in a search.
    """
    with memory_errors(), listening(progress):
        return _verify(model, (prop, inputs, unsafe), timeout, certificate, settings)


def _verify(
    model: Any,
    given: Given,
    timeout: float | None,
    certificate: str | Path | None,
    settings: dict[str, Any],
) -> Verdict:
    begin, moment = time.perf_counter(), time.monotonic()
    seconds, chosen = check_seconds(timeout), make_settings("verify", settings)
    is_file = isinstance(model, (str, Path))
    if certificate is not None:
        check_certificate(chosen)
    if not is_file and (certificate is not None or chosen.float32_semantics):
        raise InputError("a certificate, and the float32 semantics, are about an ONNX file")
    asked, name = _property(*given)
    loaded = load_asked(model, asked_about(asked))
    check_fit(loaded, asked, str(model) if is_file else "the model", name)
    load = time.perf_counter() - begin
    budget = Budget.of(seconds, chosen.memory, since=moment)
    logs: list[ProofLog] = []

    def new_log(query: Query, case: int) -> NullLog:
        logs.append(ProofLog(query, case))
        return logs[-1]

    if chosen.float32_semantics:
        verdict = _solve_deployed(model, loaded, asked, chosen, budget)
    elif certificate is None:
        verdict = solve_property(loaded, asked, chosen, budget)
    else:
        verdict = solve_property(loaded, asked, chosen, budget, new_log=new_log)
    if certificate is not None and verdict.status == "unsat":
        file = given[0] if isinstance(given[0], (str, Path)) else None
        text = (
            format_property(asked).encode() if file is None else read_bytes(Path(file), "property")
        )
        contents = read_model(Path(model)), text
        verdict = _with_certificate(verdict, logs, contents, asked, certificate, budget)
    spent = {"load": load, **verdict.seconds, "total": time.perf_counter() - begin}
    return replace(verdict, seconds=spent)


def _property(
    prop: str | Path | Property | None, inputs: Condition | None, unsafe: Condition | None
) -> tuple[Property, str]:
    """The property that is asked about, and its name in a message."""
    if inputs is not None and unsafe is not None and prop is None:
        return property_of(inputs, unsafe), "the property"
    if prop is None or inputs is not None or unsafe is not None:
        raise InputError("verify takes a property, or both inputs and unsafe")
    if isinstance(prop, Property):
        return prop, "the property"
    return load_property(Path(prop)), str(prop)


def asked_about(prop: Property) -> NDArray[np.float32]:
    """A few inputs [points, inputs] that a property is about: the ends and the middle of a box."""
    boxes = [(case.lower, case.upper) for case in prop.cases[:1]]
    rows = [[low, high, low / 2 + high / 2] for low, high in boxes]
    with np.errstate(over="ignore"):
        points = np.reshape(rows, (-1, prop.inputs)).astype(np.float32)
    return points[np.isfinite(points).all(1)]


def check_fit(loaded: LoadedNetwork, prop: Property, model: str, path: str) -> None:
    """Refuse a property that is about another network."""
    network = loaded.network
    for what, has, wants in (
        ("inputs", network.inputs, prop.inputs),
        ("outputs", network.outputs, prop.outputs),
    ):
        if has != wants:
            raise InputError(
                f"{path} is about a network with {wants} {what}, but {model} has {has}: "
                "the two files do not belong together"
            )
    if loaded.comparisons_only and not _compares_only(prop):
        raise UnsupportedError(
            f"{model} ends in a softmax, so only comparisons of outputs with each other can be "
            f"decided; {path} asks for more"
        )


def solve_property(
    loaded: LoadedNetwork,
    prop: Property,
    settings: Settings,
    budget: Budget,
    deployment: Deployment | None = None,
    new_log: Callable[[Query, int], NullLog] = lambda query, case: NullLog(query),
    strategy: Strategy | None = None,
) -> Verdict:
    """Decide a property box by box: broken if one is, proved if all are.

    With a deployment, proofs are about every float32 evaluation of the network. `new_log`
    makes the proof log of a query and its case.
    """
    device = pick_device(settings.device, settings.precision)
    dtype = getattr(torch, settings.precision)
    network = loaded.network.to(device, dtype)
    verdicts: list[Verdict] = []
    for number, case in enumerate(prop.cases):
        domain = Box(torch.from_numpy(case.lower), torch.from_numpy(case.upper))
        if deployment is not None:
            domain = received(domain)
            with torch.no_grad():
                network = deployed(loaded.network, domain, deployment, budget=budget)
            network = network.to(device, dtype)
        judge = Judge(case.lower, case.upper, loaded.runtime.run, prop.broken_by)
        query = ask(network, domain, case.unsafe)
        log = new_log(query, number)
        problem = Problem(query, judge, settings, budget, strategy or Strategy(), log)
        verdicts.append(run(problem, "verify"))
        if verdicts[-1].status == "sat":
            break
    return _combine(verdicts)


def _solve_deployed(
    model: str | Path, loaded: LoadedNetwork, prop: Property, settings: Settings, budget: Budget
) -> Verdict:
    """A verdict on every float32 evaluation; `sat` or `unknown` where these cannot be bounded."""
    try:
        deployment = read_deployment(model)
        return solve_property(loaded, prop, settings, budget, deployment)
    except UnsupportedError as error:
        tried = solve_property(loaded, prop, replace(settings, engine="attack"), budget)
        return replace(tried, reason=str(error)) if tried.status == "unknown" else tried


def _with_certificate(
    verdict: Verdict,
    logs: list[ProofLog],
    contents: tuple[bytes, bytes],
    prop: Property,
    path: str | Path,
    budget: Budget,
) -> Verdict:
    """The verdict with its proof written to a file, or with the reason why it is not."""
    from fgp_vnn.certificate.prove import NoCertificateError, prove

    def watch() -> None:
        if budget.expired():
            raise NoCertificateError("time was up before the proof was checked")

    begin = time.perf_counter()
    network, text = contents
    try:
        if gaps := [log.gap for log in logs if log.gap]:
            raise NoCertificateError(gaps[0])
        steps = [step for log in logs for step in log.steps]
        data, _ = prove(steps, network, text, prop, watch)
    except NoCertificateError as error:
        return replace(verdict, reason=f"no certificate: {error}")
    write_bytes(path, data, "certificate")
    seconds = verdict.seconds | {"certificate": time.perf_counter() - begin}
    return replace(verdict, certificate=str(path), seconds=seconds)


def _combine(verdicts: list[Verdict]) -> Verdict:
    if not verdicts:
        return Verdict("unsat", "property", reason="the input set is empty")
    order = ("sat", "timeout", "unknown", "unsat")
    chosen = min(verdicts, key=lambda verdict: order.index(verdict.status))
    if chosen.status == "unsat":
        chosen = max(verdicts, key=lambda verdict: sum(verdict.seconds.values()))
    seconds: dict[str, float] = {}
    statistics: dict[str, int] = {}
    for verdict in verdicts:
        for name, value in verdict.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + value
        for name, count in verdict.statistics.items():
            statistics[name] = statistics.get(name, 0) + count
    return replace(chosen, seconds=seconds, statistics=statistics)


def _compares_only(prop: Property) -> bool:
    """Whether each row is y_i - y_j against 0, which a softmax does not change."""
    for case in prop.cases:
        for conjunction in case.unsafe:
            if conjunction.limits.any() or conjunction.rows.sum(axis=1).any():
                return False
            if ((conjunction.rows != 0).sum(axis=1) > 2).any():
                return False
    return True
