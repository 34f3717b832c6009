"""`verify`: an ONNX network and a VNN-LIB property in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from fgp_vnn.api.cases import asked_about, check_fit, combine, load_for
from fgp_vnn.api.opaque import attack_refused
from fgp_vnn.api.opening import divide, load_asked
from fgp_vnn.api.written import as_files
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError, memory_errors
from fgp_vnn.base.files import check_writable, read_bytes, write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.story import Stage, listening
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.base.words import NO_CERTIFICATE
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.many import proved_at_once
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog, ProofLog
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings, check_certificate, make_settings
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.network.onnx.deployed import Deployment, read_deployment
from fgp_vnn.network.onnx.opaque import FLAT
from fgp_vnn.property import Property, load_property
from fgp_vnn.property.conditions import Condition, property_of
from fgp_vnn.query import Query, ask
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.float32 import deployed, received


def verify(
    model: Any,
    prop: str | Path | Property | None = None,
    *,
    inputs: Condition | None = None,
    unsafe: Condition | None = None,
    certificate: str | Path | None = None,
    progress: Callable[[Stage], None] | None = None,
    **options: Any,
) -> Verdict:
    """Decide whether a network can break a property.

    The property is a VNN-LIB file, a `Property`, or two conditions on the `variables` of the model:
    which inputs are meant, and which outputs are unsafe. The model is an ONNX file, or what
    `load_model` takes. Options are `timeout` in seconds and the fields of `Settings`.

    The proof of an `unsat` is written to the file `certificate`, if one is given; a model and a
    property that are no files are then written beside it, as .onnx and .vnnlib. Where that cannot
    be done, the verdict's `certificate` stays empty and its `reason` says why. `progress` is called
    with a `Stage` at each step, and a few times a second in a search.
    """
    limits, settings = divide(options, ("timeout",))
    timeout = limits.get("timeout")
    with listening(progress):
        if isinstance(model, (str, Path)) and isinstance(prop, (str, Path)):
            if inputs is not None or unsafe is not None:
                raise InputError("verify takes a property, or both inputs and unsafe")
            return _verify_files(model, prop, timeout, certificate, settings)
        asked = _property(prop, inputs, unsafe)
        given = asked if prop is None else prop
        if certificate is not None:
            return _verify_proved(model, given, timeout, Path(certificate), settings)
        if settings.get("float32_semantics"):
            with TemporaryDirectory() as folder, as_files(model, given, Path(folder, "m")) as files:
                return _verify_files(*files[:2], timeout, None, settings)
        return _verify_asked(model, asked, timeout, settings)


def _verify_proved(
    model: Any,
    prop: str | Path | Property,
    timeout: float | None,
    certificate: Path,
    settings: dict[str, Any],
) -> Verdict:
    """The verdict with its proof; what is not a file, and is needed to check it, is kept beside."""
    check_writable(certificate, "certificate")
    with as_files(model, prop, certificate) as (network, text, made):
        verdict = _verify_files(network, text, timeout, certificate, settings)
        if not verdict.certificate:
            for path in made:
                path.unlink(missing_ok=True)
    return verdict


def _verify_asked(
    model: Any, prop: Property, timeout: float | None, settings: dict[str, Any]
) -> Verdict:
    """The verdict on a model and a property that are not both files."""
    begin, moment = time.perf_counter(), time.monotonic()
    seconds, chosen = check_seconds(timeout), make_settings("verify", settings)
    with memory_errors():
        loaded = load_asked(model, asked_about(prop))
        check_fit(loaded, prop, "the model", "the property")
        load = time.perf_counter() - begin
        budget = Budget.of(seconds, chosen.memory, since=moment)
        verdict = solve_property(loaded, prop, chosen, budget)
    spent = {"load": load, **verdict.seconds, "total": time.perf_counter() - begin}
    return replace(verdict, seconds=spent, note=loaded.note)


def _property(
    prop: str | Path | Property | None, inputs: Condition | None, unsafe: Condition | None
) -> Property:
    """The property that is asked about."""
    if inputs is not None and unsafe is not None and prop is None:
        return property_of(inputs, unsafe)
    if prop is None or inputs is not None or unsafe is not None:
        raise InputError("verify takes a property, or both inputs and unsafe")
    return prop if isinstance(prop, Property) else load_property(Path(prop))


def _verify_files(
    model: str | Path,
    prop: str | Path,
    timeout: float | None,
    certificate: str | Path | None,
    settings: dict[str, Any],
) -> Verdict:
    """The verdict on two files."""
    begin, moment = time.perf_counter(), time.monotonic()
    seconds, chosen = check_seconds(timeout), make_settings("verify", settings)
    if certificate is not None:
        check_certificate(chosen)
    limit = partial(Budget.of, seconds, chosen.memory, since=moment)
    files = Path(model), Path(prop)
    with memory_errors():
        asked = load_property(files[1], limit().memory)
        try:
            with memory_errors():
                verdict = _verify(files, asked, certificate, chosen, limit)
        except (UnsupportedError, OutOfMemoryError) as error:
            verdict = attack_refused(files, asked, chosen, limit(), error)
    return replace(verdict, seconds=verdict.seconds | {"total": time.perf_counter() - begin})


def _verify(
    files: tuple[Path, Path],
    prop: Property,
    certificate: str | Path | None,
    settings: Settings,
    limit: Callable[[], Budget],
) -> Verdict:
    """The verdict on the files of a network and of its property; `limit` begins a budget."""
    logs: list[ProofLog] = []

    def new_log(query: Query, case: int) -> NullLog:
        logs.append(ProofLog(query, case))
        return logs[-1]

    verdicts: list[Verdict] = []
    begin = time.perf_counter()
    # What a certificate or a deployment is about is read from the file, for all inputs.
    whole = certificate is not None or settings.float32_semantics
    for loaded, part in load_for(files, prop, whole=whole):
        load, budget = time.perf_counter() - begin, limit()
        if settings.attack and FLAT & loaded.operators.keys():  # gradients need slopes in place
            with suppress(UnsupportedError):
                error = UnsupportedError("its gradients are 0")
                tried = attack_refused(files, part, settings, budget.share(0.5), error)
                if tried.status == "sat":
                    return replace(tried, seconds={"load": load, **tried.seconds})
        if settings.float32_semantics:
            verdict = _solve_deployed(files[0], loaded, part, settings, budget)
        elif certificate is None:
            verdict = solve_property(loaded, part, settings, budget)
        else:
            verdict = solve_property(loaded, part, settings, budget, new_log=new_log)
        verdicts.append(replace(verdict, seconds={"load": load, **verdict.seconds}))
        if verdict.status == "sat":
            break
        begin = time.perf_counter()
    verdict = combine(verdicts)
    if certificate is not None and verdict.status == "unsat":
        verdict = _with_certificate(verdict, logs, files, prop, certificate, limit())
    return verdict


def no_log(query: Query, case: int) -> NullLog:
    """The log of a query that no certificate is asked for."""
    return NullLog(query)


def solve_property(
    loaded: LoadedNetwork,
    prop: Property,
    settings: Settings,
    budget: Budget,
    deployment: Deployment | None = None,
    new_log: Callable[[Query, int], NullLog] = no_log,
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
    strategy = strategy or Strategy()
    together = settings.engine != "attack" and deployment is None and new_log is no_log
    begin = time.perf_counter()
    if together and len(prop.cases) >= strategy.inputs.cases:
        proved = proved_at_once(network, prop.cases, budget, strategy)
        seconds, statistics = {"bounds": time.perf_counter() - begin}, {"boxes": len(prop.cases)}
        if any(proved):
            verdicts.append(Verdict("unsat", "bounds", seconds=seconds, statistics=statistics))
    else:
        proved = [False] * len(prop.cases)
    for number, case in enumerate(prop.cases):
        if proved[number]:
            continue
        if number and budget.expired():
            verdicts.append(Verdict("timeout", reason=f"time is up before box {number + 1}"))
            break
        domain = Box(torch.from_numpy(case.lower), torch.from_numpy(case.upper))
        if deployment is not None:
            domain = received(domain)
            with torch.no_grad():
                network = deployed(loaded.network, domain, deployment, budget=budget)
            network = network.to(device, dtype)
        judge = Judge(case.lower, case.upper, loaded.runtime.run, prop.broken_by)
        query = ask(network, domain, case.unsafe)
        log = new_log(query, number)
        problem = Problem(query, judge, settings, budget, strategy, log)
        verdicts.append(run(problem, "verify"))
        if verdicts[-1].status == "sat":
            break
    return combine(verdicts)


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
    files: tuple[Path, Path],
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
    network, text = read_model(files[0]), read_bytes(files[1], "property")
    try:
        if gaps := [log.gap for log in logs if log.gap]:
            raise NoCertificateError(gaps[0])
        steps = [step for log in logs for step in log.steps]
        data, _ = prove(steps, network, text, prop, watch)
    except NoCertificateError as error:
        return replace(verdict, reason=f"{NO_CERTIFICATE}: {error}")
    write_bytes(path, data, "certificate")
    seconds = verdict.seconds | {"certificate": time.perf_counter() - begin}
    return replace(verdict, certificate=str(path), seconds=seconds)
