"""`verify`: an ONNX network and a VNN-LIB property in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from fgp_vnn.api.cases import asked_about, check_fit, join_verdicts, load_for
from fgp_vnn.api.joint import declared_verdict, networks_of, open_joint, refuse_joint
from fgp_vnn.api.opening import divide, load_asked
from fgp_vnn.api.properties import property_of
from fgp_vnn.api.refused import attack_refused
from fgp_vnn.api.written import as_files, note_of
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError, memory_errors
from fgp_vnn.base.files import check_writable, read_bytes, write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.story import Stage, listening
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.base.words import NO_CERTIFICATE
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.budget.host import cores
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.many import box_of, log_box, proved_at_once
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog, ProofLog
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings, check_certificate, make_settings
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.network.onnx.deployed import Deployment, read_deployment
from fgp_vnn.network.onnx.opaque import FLAT
from fgp_vnn.property import Property, load_property
from fgp_vnn.property.conditions import Condition
from fgp_vnn.query import Query, ask
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.float32 import deployed, received


def verify(
    model: Any,
    prop: str | Path | Property | None = None,
    *,
    inputs: Any = None,
    unsafe: Condition | None = None,
    certificate: str | Path | None = None,
    progress: Callable[[Stage], None] | None = None,
    **options: Any,
) -> Verdict:
    """Decide whether a network can break a property.

    The property is a VNN-LIB file, a `Property`, or two conditions on the `variables` of the model:
    which inputs are meant, also as a pair (lower, upper), and which outputs are unsafe. The model
    is an ONNX file, or what `load_model` takes; for a property of several networks, a dict of them
    by their names. Options are `timeout` in seconds and the fields of `Settings`.

    The proof of an `unsat` is written to the file `certificate`, if one is given; a model and a
    property that are no files are then written beside it, as .onnx and .vnnlib. Where that cannot
    be done, the verdict's `certificate` stays empty and its `reason` says why. `progress` is called
    with a `Stage` at each step, and a few times a second in a search.
    """
    begin, moment = time.perf_counter(), time.monotonic()
    limits, settings = divide(options, ("timeout",))
    seconds, chosen = check_seconds(limits.get("timeout")), make_settings("verify", settings)
    several = networks_of(model) is not None
    both = not several and isinstance(model, (str, Path)) and isinstance(prop, (str, Path))
    files = (Path(model), Path(str(prop))) if both else None
    if certificate is not None:
        check_certificate(chosen)
        read = (Path(given) for given in (model, prop) if isinstance(given, (str, Path)))
        check_writable(Path(certificate), "certificate", read)
    limit = partial(Budget.of, seconds, chosen.memory, since=moment)
    about_files = certificate is not None or chosen.float32_semantics
    if files is None and not several and about_files:
        given = _property(prop, inputs, unsafe, limit().memory) if prop is None else prop
        return _verify_written(model, given, certificate, progress, options)
    with listening(progress), memory_errors():
        asked = _property(prop, inputs, unsafe, limit().memory)
        try:
            with memory_errors():
                if several or asked.joint is not None:
                    if about_files:
                        raise refuse_joint("certificates and --float32-semantics are")
                    model, files = open_joint(model, asked), None
                verdict = _verify(files or model, asked, certificate, chosen, limit)
        except (UnsupportedError, OutOfMemoryError) as error:
            if files is None:
                raise
            verdict = attack_refused(files, asked, chosen, limit(), error)
    total = verdict.seconds | {"total": time.perf_counter() - begin}
    return replace(declared_verdict(verdict, asked), seconds=total)


def _verify_written(
    model: Any,
    prop: str | Path | Property,
    certificate: str | Path | None,
    progress: Callable[[Stage], None] | None,
    options: dict[str, Any],
) -> Verdict:
    """The verdict on what is written to files first; what is needed to check a certificate stays
    beside it."""
    with TemporaryDirectory() as folder:
        stem = Path(folder, "network") if certificate is None else Path(certificate)
        with as_files(model, prop, stem) as (network, text, made):
            verdict = verify(network, text, certificate=certificate, progress=progress, **options)
            if not verdict.certificate:
                for path in made:
                    path.unlink(missing_ok=True)
    return replace(verdict, note=note_of(model))


def _property(
    prop: str | Path | Property | None,
    inputs: Any,
    unsafe: Condition | None,
    memory: int,
) -> Property:
    """The property that is asked about, read within so many bytes."""
    if inputs is not None and unsafe is not None and prop is None:
        return property_of(inputs, unsafe)
    if prop is None or inputs is not None or unsafe is not None:
        raise InputError("verify takes a property, or both inputs and unsafe")
    if isinstance(prop, Property):
        return prop
    if not isinstance(prop, (str, Path)):
        raise InputError(f"a property is a path or a Property, not {type(prop).__name__}")
    return load_property(Path(prop), memory, joint=True)


def _networks(
    model: Any, prop: Property, *, all_inputs: bool
) -> Iterator[tuple[LoadedNetwork, Property]]:
    """The network of two files or of a model, with the part of the property that it is for."""
    if isinstance(model, tuple):
        yield from load_for(model, prop, all_inputs=all_inputs)
        return
    loaded = load_asked(model, asked_about(prop))
    check_fit(loaded, prop, "the model", "the property")
    yield loaded, prop


def _verify(
    model: Any,
    prop: Property,
    certificate: str | Path | None,
    settings: Settings,
    limit: Callable[[], Budget],
) -> Verdict:
    """The verdict on a model, or on two files, and their property; `limit` begins a budget."""
    logs: list[ProofLog] = []

    def new_log(query: Query, case: int) -> NullLog:
        logs.append(ProofLog(query, case))
        return logs[-1]

    verdicts, asked = list[Verdict](), 0
    begin = time.perf_counter()
    # What a certificate or a deployment is about is read from the file, for all inputs.
    for_all = certificate is not None or settings.float32_semantics
    for loaded, part in _networks(model, prop, all_inputs=for_all):
        load, budget = time.perf_counter() - begin, limit()
        flat = FLAT & loaded.operators.keys()  # gradients need slopes in place
        if settings.attack and flat and isinstance(model, tuple):
            some = budget.share(Strategy().attack.blind.share)
            with suppress(UnsupportedError):
                error = UnsupportedError("its gradients are 0")
                tried = attack_refused(model, part, settings, some, error)
                if tried.status == "sat":
                    return replace(tried, seconds={"load": load, **tried.seconds})
        if settings.float32_semantics:
            verdict = _solve_deployed(model[0], loaded, part, settings, budget)
        else:
            log = no_log if certificate is None else new_log
            verdict = solve_property(loaded, part, settings, budget, new_log=log)
        told = {"load": load, **verdict.seconds}
        verdicts.append(replace(verdict, seconds=told, note=loaded.note))
        asked += len(part.cases)
        if verdict.status == "sat":
            break
        if asked < len(prop.cases) and budget.expired():
            verdicts.append(Verdict("timeout", reason="time is up before the last boxes"))
            break
        begin = time.perf_counter()
    verdict = join_verdicts(verdicts)
    if certificate is not None and verdict.status == "unsat":
        verdict = _with_certificate(verdict, logs, model, prop, certificate, limit())
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
    jobs = settings.jobs or cores() if device.type == "cpu" else 1  # a GPU has work for one
    verdicts: list[Verdict] = []
    strategy = strategy or Strategy()
    together = settings.engine != "attack" and deployment is None
    # The checker bounds boxes by itself, and where it fails they are split: few inputs only.
    together &= new_log is no_log or network.inputs <= strategy.inputs.few
    begin = time.perf_counter()
    if together and len(prop.cases) >= strategy.inputs.cases:
        proved = proved_at_once(network, prop.cases, budget, strategy)
        seconds, statistics = {"bounds": time.perf_counter() - begin}, {"boxes": len(prop.cases)}
        if any(weights is not None for weights in proved):
            verdicts.append(Verdict("unsat", "bounds", seconds=seconds, statistics=statistics))
    else:
        proved = [None] * len(prop.cases)
    for number, case in enumerate(prop.cases):
        weights = proved[number]
        if weights is not None:
            if new_log is not no_log:
                log_box(new_log(ask(network, box_of(case), case.unsafe), number), case, weights)
            continue
        if number and budget.expired():
            verdicts.append(Verdict("timeout", reason=f"time is up before box {number + 1}"))
            break
        domain = box_of(case)
        if deployment is not None:
            domain = received(domain)
            with torch.no_grad():
                network = deployed(loaded.network, domain, deployment, budget=budget)
            network = network.to(device, dtype)
        judge = Judge(case.lower, case.upper, loaded.runtime.run, prop.broken_by)
        query = ask(network, domain, case.unsafe)
        log = new_log(query, number)
        problem = Problem(query, judge, settings, budget, strategy, log, jobs)
        verdicts.append(run(problem, "verify"))
        if verdicts[-1].status == "sat":
            break
    return join_verdicts(verdicts)


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
