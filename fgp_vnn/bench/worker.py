"""The worker process: it loads torch once and solves one instance after another.

It reads one JSON line per instance from its standard input and writes one JSON line per answer to
its standard output. It ends when its input does, so it cannot outlive the process that started it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import (
    InputError,
    OutOfMemoryError,
    UnsupportedError,
    one_line,
    ran_out_of_memory,
)
from fgp_vnn.base.files import read_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.threads import start_watching
from fgp_vnn.bench.facts import machine, versions
from fgp_vnn.bench.record import Answer
from fgp_vnn.bench.warmup import warm_up

Verify = Callable[..., Any]


def main(arguments: list[str]) -> None:
    """Solve until the input ends.

    The arguments are the function to call (module:name), its settings as JSON, and a memory limit
    in bytes.
    """
    function, settings, memory = arguments[0], json.loads(arguments[1]), int(arguments[2])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with answers

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    start_watching("input", _listen, jobs)
    try:
        verify = _find(function)
    except InputError as error:
        say({"failed": str(error)})
        return
    _limit_memory(memory, settings.get("device", "auto"))
    if "torch" in sys.modules:
        warm_up(verify, settings)
    say({"ready": True})
    facts = {"versions": versions(), "machine": {**machine(), "device": settings.get("device", "")}}
    while True:
        job = json.loads(jobs.get())
        if job.get("check"):
            say(_check_certificate(job))
        else:
            say({**vars(_solve(verify, job, settings)), **facts})


def _listen(jobs: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)  # the coordinator is gone, and a computation cannot be interrupted


def _find(function: str) -> Verify:
    module, _, name = function.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{function}: cannot be loaded: {error}") from error
    if not callable(found):
        raise InputError(f"{function}: not a function")
    return found  # type: ignore[no-any-return]


def _limit_memory(memory: int, device: str) -> None:
    """Make an allocation beyond the limit (bytes) raise MemoryError instead of ending the process.

    Not with a GPU, whose driver maps far more memory than it uses; there only the guard watches.
    """
    torch = sys.modules.get("torch")
    if device != "cpu" and torch is not None and torch.cuda.is_available():
        return
    import resource  # not on Windows, where no process is guarded

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _solve(verify: Verify, job: dict[str, Any], settings: dict[str, Any]) -> Answer:
    networks, prop = job["networks"], job["property"]
    if "certificate" in job:
        settings = {**settings, "certificate": job["certificate"]}
    start = time.perf_counter()
    try:
        if len(networks) != 1:
            raise UnsupportedError(f"a property of {len(networks)} networks")
        verdict = verify(networks[0], prop, timeout=job["timeout"], **settings)
    except UnsupportedError as error:
        return Answer("unknown", time.perf_counter() - start, reason=f"unsupported: {error}")
    except Exception as error:
        return Answer("error", time.perf_counter() - start, reason=_reason(error))
    answer = Answer(
        status=verdict.status,
        run_time=time.perf_counter() - start,
        decided_by=verdict.decided_by,
        reason=verdict.reason,
        certificate=Path(verdict.certificate).name,
        seconds=dict(verdict.seconds),
        statistics=dict(verdict.statistics),
    )
    if verdict.status != "sat":
        return answer
    try:
        return _with_evidence(answer, verdict, networks[0], prop)
    except Exception as error:
        return replace(answer, confirmed=False, reason=_reason(error))


def _with_evidence(answer: Answer, verdict: Any, network: str, prop: str) -> Answer:
    """Return the answer with the text of its counterexample and its judgement by onnxruntime."""
    from fgp_vnn.bench.check import OnnxFile, judge_results
    from fgp_vnn.property import load_property
    from fgp_vnn.property.results import format_results

    start = time.perf_counter()
    loaded = load_property(Path(prop), joint=True)
    text = format_results(verdict, loaded)
    if loaded.networks > 1:  # confirmed by the verifier alone
        return replace(answer, counterexample=text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.txt"
        path.write_text(text, encoding="utf-8")
        judged = judge_results(path, OnnxFile(Path(network)), loaded)
    return replace(
        answer,
        counterexample=text,
        confirmed=not judged.fault,
        standings=judged.standings,
        reason=judged.fault or answer.reason,
        seconds={**answer.seconds, "check": time.perf_counter() - start},
    )


def _check_certificate(job: dict[str, Any]) -> dict[str, Any]:
    """Return why the checker refuses a certificate (empty: it accepts), seconds, size, leaves."""
    from fgp_vnn.certificate.checker.check import check_files

    start = time.perf_counter()
    found, fault = {}, ""
    try:
        certificate = read_bytes(Path(job["certificate"]), "certificate")
        found["certificate_bytes"] = len(certificate)
        network = read_model(Path(job["networks"][0]))
        prop = read_bytes(Path(job["property"]), "property")
        found["certificate_leaves"] = check_files(certificate, network, prop).leaves
    except (InputError, MemoryError, RecursionError) as error:
        fault = f"certificate refused: {one_line(error)}"
    return {"fault": fault, "seconds": time.perf_counter() - start, "statistics": found}


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if ran_out_of_memory(error):
        return str(OutOfMemoryError(error))
    traceback.print_exc()
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


if __name__ == "__main__":
    main(sys.argv[1:])
