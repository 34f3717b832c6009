"""A certificate cannot make its checker work for long: by its size, and by a time limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.proof import Certificate, ProofStep, read_certificate
from fgp_vnn.certificate.write import write_certificate
from fgp_vnn.cli.main import main
from tests.certificate.bundled import DEEP, deep
from tests.helpers.places import BENCHMARK


def many_leaves(count: int) -> bytes:
    """One bound of one neuron, many times over."""
    arrays = {
        "neurons": np.zeros(count),
        "sides": np.ones(count),
        "tree": np.full(count, -1),
        "columns": np.zeros(0),
        "slopes": np.zeros((count, 0)),
        "multipliers": np.zeros(0),
    }
    return write_certificate(Certificate("", "", (ProofStep("lemma", 0, arrays, 0),)))


def test_few_bytes_cannot_ask_for_many_bounds() -> None:
    data = many_leaves(2_000_000)
    assert len(data) < 50_000
    with pytest.raises(InputError, match="leaves are too many"):
        read_certificate(data)
    assert len(read_certificate(many_leaves(1000)).steps) == 1


def test_a_proof_is_far_from_the_limit() -> None:
    data = deep()
    steps = read_certificate(data).steps
    assert 8 * sum(int((step.arrays["tree"] < 0).sum()) for step in steps) < 4 * len(data)


def test_a_check_that_takes_too_long_is_given_up_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = tmp_path / "proof.npz"
    proof.write_bytes(deep())
    files = [str(proof), *(str(BENCHMARK / name) for name in DEEP)]
    assert main(["check-certificate", *files, "--timeout", "1e-6"]) == 1
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and said.startswith("certificate refused") and "--timeout" in said
    assert main(["check-certificate", *files, "--timeout", "1e6"]) == 0
