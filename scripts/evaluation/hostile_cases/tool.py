"""The verifier under test as a few functions, so that a faulty one can replace it."""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hostile_cases.case import Array, Ball

Options = Mapping[str, Any]
ON_BY_DEFAULT = ("attack", "alternate")  # the command line has --no- for these

# Names of the ways to run the verifier, with their options; only the first two use the attack.
ENGINES: dict[str, dict[str, Any]] = {
    "default": {},
    "float32": {"precision": "float32"},
    "walk": {"engine": "walk", "attack": False},
    "split": {"engine": "split", "attack": False},
    "bounds": {"engine": "bounds", "attack": False},
    "lp": {"lp": True, "attack": False},
    "semantics": {"float32_semantics": True, "attack": False},
}


@dataclass(frozen=True, eq=False)
class Answer:
    """A status, and the values that support it."""

    status: str  # the tool's own, or refused, or crash
    x: Array | None = None
    y: Array | None = None
    reason: str = ""
    ends: tuple[float, float] = (0.0, np.inf)  # lower and upper bound of a radius


@dataclass(frozen=True)
class Tool:
    """Functions from files to answers; `check` answers accepted or refused."""

    verify: Callable[[Path, Path, Options], Answer]
    certify: Callable[[Path, Ball, Options], Answer]
    check: Callable[[Path, Path, Path], Answer]
    prove: Callable[[Path, Path, Path], bool]  # writes a certificate of an unsat
    radius: Callable[[Path, Ball, Options], Answer]  # up to the ball's radius


def fgp_vnn_tool(limit: float) -> Tool:
    """The package, with `limit` seconds for each question."""
    import fgp_vnn

    def verify(model: Path, prop: Path, options: Options) -> Answer:
        verdict = fgp_vnn.verify(model, prop, timeout=limit, **options)
        found = verdict.counterexample
        return Answer(verdict.status, *((found.x, found.y) if found else (None, None)))

    def certify(model: Path, ball: Ball, options: Options) -> Answer:
        center = np.array([ball.center])
        result = fgp_vnn.certify(
            model, center, epsilon=ball.epsilon, norm=ball.norm, timeout=limit, **options
        )
        first = result[0] if isinstance(result, list) else result
        found = first.counterexample
        return Answer(first.status, *((found.x.reshape(-1), found.y) if found else (None, None)))

    def check(certificate: Path, model: Path, prop: Path) -> Answer:
        from fgp_vnn.cli.main import main

        with contextlib.redirect_stdout(io.StringIO()) as out, _quiet() as err:
            code = main(["check-certificate", str(certificate), str(model), str(prop)])
        said = (out.getvalue() + err.getvalue()).strip()
        return Answer("accepted" if code == 0 else "refused", reason=said)

    def prove(certificate: Path, model: Path, prop: Path) -> bool:
        verdict = fgp_vnn.verify(model, prop, timeout=30, certificate=certificate)
        return bool(verdict.certificate)

    def radius(model: Path, ball: Ball, options: Options) -> Answer:
        center = np.array([ball.center])
        result = fgp_vnn.radius(
            model, center, ball.norm, maximum=ball.epsilon, timeout=limit, **options
        )
        first = result[0] if isinstance(result, list) else result
        found = first.counterexample
        x, y = (found.x.reshape(-1), found.y) if found else (None, None)
        status = "robust" if first.lower > 0 else "unknown"
        return Answer(status, x, y, ends=(first.lower, first.upper))

    refused = (fgp_vnn.InputError,)
    return Tool(
        _guarded(verify, refused),
        _guarded(certify, refused),
        _guarded(check, refused),
        prove,
        _guarded(radius, refused),
    )


def _quiet() -> contextlib.redirect_stderr[io.StringIO]:
    return contextlib.redirect_stderr(io.StringIO())


def _guarded(
    ask: Callable[..., Answer], refused: tuple[type[BaseException], ...]
) -> Callable[..., Answer]:
    """The same function, with bad input as the answer refused and other exceptions as crash."""

    def guarded(*arguments: Any) -> Answer:
        try:
            return ask(*arguments)
        except refused as error:
            return Answer("refused", reason=str(error))
        except Exception:
            lines = traceback.format_exc().strip().splitlines()
            return Answer("crash", reason=f"{lines[-1]} ({lines[-3].strip()})"[:300])

    return guarded


def command_options(options: Options) -> str:
    """The options as text for the command line."""
    words = []
    for name, value in options.items():
        word, usual = name.replace("_", "-"), name in ON_BY_DEFAULT
        if not isinstance(value, bool):
            words.append(f"--{word} {value}")
        elif value != usual:
            words.append(f"--no-{word}" if usual else f"--{word}")
    return "".join(f" {word}" for word in words)
