"""Certificates forged at random: refused in one line, or still a proof, in bounded memory."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgp_vnn.base.errors import MOST, InputError
from fgp_vnn.certificate.checker.check import check, understood
from fgp_vnn.certificate.checker.network import CheckedNetwork
from fgp_vnn.certificate.checker.proof import ARRAYS, Certificate, ProofStep, read_certificate
from fgp_vnn.certificate.write import write_certificate
from fgp_vnn.cli.main import main
from fgp_vnn.property import Case, Conjunction, Property
from tests.certificate.bundled import DEEP, contents, deep
from tests.certificate.maps import affine
from tests.helpers.places import BENCHMARK


def absolute() -> CheckedNetwork:
    """y = |x| as two neurons."""
    return CheckedNetwork((affine({0: [[1], [-1]]}, [0, 0]), affine({1: [[1, 1]]}, [0])), 1)


def at_most(limit: float) -> Property:
    """Broken where |x| <= limit, or where |x| >= 2, for -1 <= x <= 1."""
    rows = [(1.0, limit), (-1.0, -2.0)]
    unsafe = [Conjunction(np.array([[a]]), np.array([b]), np.array([False])) for a, b in rows]
    return Property((Case(-np.ones(1), np.ones(1), tuple(unsafe)),), 1, 1)


def proof() -> Certificate:
    """What shows that |x| is at least -0.1 and below 2: with every kind of step."""
    lemma: dict[str, Any] = {"neurons": [0], "sides": [1], "tree": [-1], "multipliers": []}
    lemma |= {"columns": [], "slopes": np.zeros((1, 0))}
    split: dict[str, Any] = {"tree": [0, -1, -1], "weights": np.ones((2, 2))}
    close = split | {"disjuncts": [0], "columns": [0, 1], "slopes": np.zeros((2, 2))}
    boxes = split | {"disjuncts": [1], "cuts": [0.0]}
    parts = [("lemma", lemma, 0), ("close", close | {"multipliers": [0, 1]}, -1)]
    parts.append(("boxes", boxes, -1))
    steps = [ProofStep(kind, 0, {n: np.array(a) for n, a in p.items()}, k) for kind, p, k in parts]
    return read_certificate(write_certificate(Certificate("n", "p", tuple(steps))))


STRANGE = [0, 1, -1, 2, -2, 127, -128, 255, 10**6, 2**31 - 1, -(2**31)]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-45, 3e38, 1e300, np.inf, -np.inf, np.nan]


def altered(generator: np.random.Generator, array: Any) -> Any:
    """An array with a strange entry, or of another length, order, shape or type."""
    result = array.copy()
    turn = generator.integers(8)
    with np.errstate(all="ignore"):
        if turn <= 2 and result.size:
            values = np.array(NUMBERS if result.dtype.kind == "f" else STRANGE)
            strange = generator.choice(values).astype(result.dtype)
            result.reshape(-1)[generator.integers(result.size)] = strange
    if turn == 3:
        return result[: len(result) // 2]
    if turn == 4:
        return np.concatenate([result, result])
    if turn == 5:
        return result[::-1]
    if turn == 6:
        return generator.choice(np.array(STRANGE), size=result.shape).astype(result.dtype)
    return result.reshape(-1)[:, None] if turn == 7 and result.ndim == 2 else result


def forged(generator: np.random.Generator) -> Certificate:
    """The proof with arrays altered, and steps left out, repeated or swapped."""
    steps = list(proof().steps)
    for _ in range(generator.integers(1, 4)):
        i, j = generator.integers(len(steps), size=2)
        turn = generator.integers(6)
        if turn <= 2:
            name = str(generator.choice(list(ARRAYS[steps[i].kind])))
            changed = altered(generator, steps[i].arrays[name])
            steps[i] = replace(steps[i], arrays=steps[i].arrays | {name: changed})
        elif turn == 3:
            steps[i], steps[j] = steps[j], steps[i]
        elif turn == 4:
            steps.insert(i, steps[j])
        else:
            case, layer = generator.choice(np.array(STRANGE[:5]), size=2).tolist()
            steps[i] = replace(steps[i], case=case, layer=layer)
    return replace(proof(), steps=tuple(steps))


def test_the_proof_that_is_forged_below_is_one() -> None:
    assert check(proof(), absolute(), at_most(-0.1)).leaves == 5
    with pytest.raises(InputError):
        check(proof(), absolute(), at_most(0.1))


@pytest.mark.slow
@given(st.integers(0, 10**9))
@settings(deadline=None, max_examples=50)
def test_a_forged_proof_of_what_is_false_is_refused_in_one_line(seed: int) -> None:
    generator = np.random.default_rng(seed)
    certificate = forged(generator)
    for limit in (0.0, 0.1):
        with pytest.raises(InputError) as caught:
            check(read_certificate(write_certificate(certificate)), absolute(), at_most(limit))
        assert str(caught.value).isprintable() and len(str(caught.value)) <= MOST


@pytest.mark.slow
@given(st.integers(0, 10**9))
@settings(deadline=None, max_examples=75)
def test_bytes_changed_cut_or_repeated_give_an_input_error_or_a_certificate(seed: int) -> None:
    generator = np.random.default_rng(seed)
    data = bytearray(write_certificate(proof()))
    for _ in range(generator.integers(1, 4)):
        at = int(generator.integers(len(data)))
        length = int(generator.integers(1, 40))
        data[at : at + length] = generator.choice(
            np.array([b"", generator.bytes(length), bytes(data[at : at + length]) * 2], object)
        )
    try:
        check(read_certificate(bytes(data)), absolute(), at_most(0.0))
    except InputError as error:
        assert str(error).isprintable() and len(str(error)) <= MOST
    else:
        raise AssertionError("what is false was proved")


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a kind that is a list": lambda h: h["steps"][0].update(kind=["close"]),
    "a kind that is an object": lambda h: h["steps"][0].update(kind={"close": 1}),
    "a kind that is a number": lambda h: h["steps"][0].update(kind=1),
    "a step that is a list": lambda h: h["steps"].__setitem__(0, ["close"]),
    "a case that is a flag": lambda h: h["steps"][0].update(case=True),
    "a case that is a fraction": lambda h: h["steps"][0].update(case=0.5),
    "a case of a thousand digits": lambda h: h["steps"][0].update(case=10**1000),
    "a layer that is a text": lambda h: h["steps"][0].update(layer="0"),
    "escapes for a network": lambda h: h.update(network="\x1b[2J\x07"),
    "escapes for a result": lambda h: h.update(result="\x1b[31msat"),
    "escapes for a version": lambda h: h.update(version="\x1b]0;title\x07"),
    "a long version": lambda h: h.update(version="1" * 100_000),
    "no steps": lambda h: h.pop("steps"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_out_of_form_is_refused_in_one_plain_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "forged.npz"
    with np.load(io.BytesIO(deep())) as arrays:
        content = dict(arrays)
    header = json.loads(content["header"].tobytes())
    HEADERS[name](header)
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **content)
    assert main(["check-certificate", str(path), *(str(BENCHMARK / part) for part in DEEP)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("certificate refused: ") and out.count("\n") == 1
    assert out.strip().isprintable() and len(out) < 2 * MOST


@given(st.integers(0, 10**9))
@settings(deadline=None, max_examples=60)
def test_a_damaged_network_is_read_or_an_input_error(seed: int) -> None:
    generator = np.random.default_rng(seed)
    data = bytearray(contents("onnx/dense_16x2_pgd.onnx", DEEP[1])[0])
    for _ in range(generator.integers(1, 6)):
        at = int(
            generator.choice(np.array([generator.integers(400), generator.integers(len(data))]))
        )
        data[at : at + int(generator.integers(1, 4))] = generator.bytes(int(generator.integers(3)))
    try:
        understood(bytes(data))
    except InputError as error:
        assert str(error).isprintable() and len(str(error)) <= MOST


@pytest.mark.slow
def test_small_certificates_cannot_ask_for_much_memory() -> None:
    program = [sys.executable, "-m", "tests.certificate.bombs"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    run = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    said = json.loads(run.stdout)
    assert said.pop("largest") < 2_000_000
    assert {name: text for name, text in said.items() if not text.startswith("refused: ")} == {}
