"""`verify`: decides whether a network can break a property."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fgp_vnn.api.boxes import BoxProblems
from fgp_vnn.api.joint import declared_verdict, networks_of, open_joint, without_name
from fgp_vnn.api.properties import property_of
from fgp_vnn.api.refused import attack_refused
from fgp_vnn.api.written import as_files, note_of
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError, memory_errors
from fgp_vnn.base.files import check_writable, read_bytes, write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.story import Stage, listening
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.base.words import NO_CERTIFICATE
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.parallel.actors import hired
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings, check_certificate, make_settings, split_options
from fgp_vnn.property import Property, load_property
from fgp_vnn.property.conditions import Condition

_FOR_ONE = (
    "certificates and --float32-semantics are for one network, with constraints on single inputs "
    "and on outputs; the property is about several, or relates inputs to others"
)


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

    The model is an ONNX file or anything else that `load_model` accepts; for a property of several
    networks, a dict from names to models. The property is a VNN-LIB file, a `Property`, or two
    arguments: `inputs`, a condition on the model's `variables`, a pair (lower, upper) or a `Ball`
    of the linf norm; and `unsafe`, a condition on the outputs. Options are `timeout` in seconds and
    the fields of `Settings`.

    If `certificate` is given and the verdict is `unsat`, the proof is written to that file; a model
    or property that is not a file is written beside it, as .onnx or .vnnlib. If no certificate can
    be made, the verdict's `certificate` is empty and its `reason` says why. `progress` is called
    with a `Stage` at each step, and a few times a second during a search.
    """
    begin, moment = time.perf_counter(), time.monotonic()
    limits, settings = split_options(options, ("timeout",))
    seconds, chosen = check_seconds(limits.get("timeout")), make_settings("verify", settings)
    model = without_name(model, prop)
    several = networks_of(model) is not None
    both = not several and isinstance(model, (str, Path)) and isinstance(prop, (str, Path))
    files = (Path(model), Path(str(prop))) if both else None
    if certificate is not None:
        _check_target(certificate, chosen, (model, prop))
    limit = partial(Budget.of, seconds, chosen.memory, since=moment)
    about_files = certificate is not None or chosen.float32_semantics
    if files is None and not several and about_files:
        given = _property(prop, inputs, unsafe, limit().memory) if prop is None else prop
        return _verify_written(model, given, certificate, progress, options)
    with listening(progress), memory_errors():
        parsed = _property(prop, inputs, unsafe, limit().memory)
        boxes = BoxProblems(chosen, proof=certificate is not None)
        try:
            with memory_errors(), hired(chosen) as boxes.staff:
                if several or parsed.joint is not None:
                    if about_files:
                        raise UnsupportedError(_FOR_ONE)
                    model, files = open_joint(model, parsed), None
                for problem in boxes.of_model(files or model, parsed, limit):
                    boxes.add(run(problem, "verify"))
                verdict = boxes.verdict()
                if certificate is not None and verdict.status == "unsat":
                    verdict = _write_certificate(boxes, (model, prop), parsed, certificate, limit())
        except (UnsupportedError, OutOfMemoryError) as error:
            if several or parsed.joint is not None:
                raise
            verdict = attack_refused(files or model, parsed, chosen, limit(), error)
    total = verdict.seconds | {"total": time.perf_counter() - begin}
    return replace(declared_verdict(verdict, parsed), seconds=total)


def _verify_written(
    model: Any,
    prop: str | Path | Property,
    certificate: str | Path | None,
    progress: Callable[[Stage], None] | None,
    options: dict[str, Any],
) -> Verdict:
    """Write the model and the property to files, then verify these. The files are kept only if a
    certificate was written, since its check needs them."""
    with TemporaryDirectory() as folder:
        stem = Path(folder, "network") if certificate is None else Path(certificate)
        with as_files(model, prop, stem) as (network, text, made):
            verdict = verify(network, text, certificate=certificate, progress=progress, **options)
            if not verdict.certificate:
                for path in made:
                    path.unlink(missing_ok=True)
    return replace(verdict, note=note_of(model) or verdict.note)


def _property(
    prop: str | Path | Property | None, inputs: Any, unsafe: Condition | None, memory: int
) -> Property:
    """The property of the user's arguments; a file is read with at most `memory` bytes."""
    if inputs is not None and unsafe is not None and prop is None:
        return property_of(inputs, unsafe)
    if prop is None or inputs is not None or unsafe is not None:
        raise InputError("verify takes a property, or both inputs and unsafe")
    if isinstance(prop, Property):
        return prop
    if not isinstance(prop, (str, Path)):
        raise InputError(f"a property is a path or a Property, not {type(prop).__name__}")
    if any(sign in str(prop) for sign in "<>=(") and not _is_there(Path(prop)):
        raise InputError(
            "a property given as text is the path of a VNN-LIB file; conditions are written with "
            "x, y = fgp_vnn.variables(model), as in verify(model, inputs=..., unsafe=y[0] >= y[1])"
        )
    return load_property(Path(prop), memory, joint=True)


def _is_there(path: Path) -> bool:
    """Whether the file exists; False for a text that is too long for a file name."""
    try:
        return path.exists()
    except OSError:
        return False


def _check_target(certificate: Any, settings: Settings, given: tuple[Any, ...]) -> None:
    """Refuse a certificate that cannot be written, before the work begins."""
    check_certificate(settings)
    if not isinstance(certificate, (str, Path)):
        raise InputError(f"certificate is {certificate!r}; it must be the path of a file")
    read = (Path(file) for file in given if isinstance(file, (str, Path)))
    check_writable(Path(certificate), "certificate", read)


def _write_certificate(
    boxes: BoxProblems, files: tuple[Any, Any], prop: Property, path: str | Path, budget: Budget
) -> Verdict:
    """Write the proof to a file. Returns the verdict with the path of the certificate, or with the
    reason why there is none."""
    from fgp_vnn.certificate.prove import NoCertificateError, prove

    def watch() -> None:
        if budget.expired():
            raise NoCertificateError("time was up before the proof was checked")

    begin, verdict = time.perf_counter(), boxes.verdict()
    network, text = read_model(Path(files[0])), read_bytes(Path(files[1]), "property")
    try:
        if gaps := [log.gap for log in boxes.logs if log.gap]:
            raise NoCertificateError(gaps[0])
        steps = [step for log in boxes.logs for step in log.steps]
        data, _ = prove(steps, network, text, prop, watch)
    except NoCertificateError as error:
        return replace(verdict, reason=f"{NO_CERTIFICATE}: {error}")
    write_bytes(path, data, "certificate")
    seconds = verdict.seconds | {"certificate": time.perf_counter() - begin}
    return replace(verdict, certificate=str(path), seconds=seconds)
