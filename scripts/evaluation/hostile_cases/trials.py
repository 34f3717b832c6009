"""Run a case with several engines and judge the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostile_cases.case import Case
from hostile_cases.oracle import Oracle
from hostile_cases.tool import ENGINES, Tool, command_options


@dataclass(frozen=True)
class Trial:
    """One question to one engine."""

    engine: str
    status: str
    fault: str  # of the answer; empty if none is found
    command: str  # that repeats the question, run beside the files
    files: dict[str, bytes] = field(default_factory=dict)


def try_case(case: Case, tool: Tool, folder: Path, engines: Sequence[str]) -> Iterator[Trial]:
    """Ask about the property with each of the engines, then about the balls."""
    model, prop = folder / "model.onnx", folder / "prop.vnnlib"
    model.write_bytes(case.network)
    prop.write_bytes(case.property)
    oracle = Oracle(case)
    files = {"model.onnx": case.network, "prop.vnnlib": case.property}
    for name in engines:
        options = ENGINES[name]
        answer = tool.verify(model, prop, options)
        fault = oracle.fault(answer, float32=bool(options.get("float32_semantics")))
        command = f"fgp-vnn verify model.onnx prop.vnnlib{command_options(options)}"
        yield Trial(name, answer.status, fault, command, files)
        if answer.status == "refused":  # while reading the files, so every engine would refuse it
            return
    for ball in case.balls:
        answer = tool.certify(model, ball, {"attack": False})
        text = ",".join(repr(v) for v in ball.center)
        command = "fgp-vnn certify model.onnx point.csv --no-attack "
        command += f"--norm {ball.norm} --epsilon {ball.epsilon!r}"
        fault = oracle.ball_fault(ball, answer)
        yield Trial(
            ball.norm, answer.status, fault, command, files | {"point.csv": f"{text}\n".encode()}
        )
