"""A case given to every engine, and what came of it."""

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
    fault: str  # what is wrong with the answer; empty if nothing is
    command: str  # that asks it again, beside the files
    files: dict[str, bytes] = field(default_factory=dict)


def try_case(case: Case, tool: Tool, folder: Path, engines: Sequence[str]) -> Iterator[Trial]:
    """The property with each of the engines, then the balls."""
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
        if answer.status == "refused":  # as it is read: no engine has a say in it
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
