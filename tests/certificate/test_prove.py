"""Certificates: what is proved is written, accepted, and told on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import check_files
from fgp_vnn.certificate.checker.proof import read_certificate
from fgp_vnn.certificate.prove import NoCertificateError, prove
from fgp_vnn.certificate.write import write_certificate
from fgp_vnn.cli.main import main
from fgp_vnn.property import load_property
from tests.certificate.bundled import DEEP, PROVED, SAT, certified, changed, contents, deep
from tests.helpers.network_models import Builder
from tests.helpers.places import BENCHMARK, ROOT


@pytest.mark.parametrize(("model", "prop"), PROVED, ids=[Path(p[1]).stem for p in PROVED])
@pytest.mark.parametrize("engine", ["auto", "split", "walk"])
def test_an_unsat_carries_a_certificate_that_is_accepted(
    model: str, prop: str, engine: str, tmp_path: Path
) -> None:
    data = certified(model, prop, tmp_path / "proof.npz", engine=engine, attack=False)
    checked = check_files(data, *contents(model, prop))
    cases = load_property(BENCHMARK / prop).cases
    assert checked.cases == len(cases) and checked.leaves >= checked.disjuncts
    assert checked.disjuncts == sum(len(case.unsafe) for case in cases)
    assert checked.margin > 0


@pytest.mark.parametrize(("network", "prop", "boxes"), [("2_2", "4", 5)])
def test_a_tree_of_boxes_is_accepted(
    network: str, prop: str, boxes: int, tmp_path: Path, shared_data: Path
) -> None:
    folder = shared_data / "vnncomp" / "acasxu_2023"
    model = folder / "onnx" / f"ACASXU_run2a_{network}_batch_2000.onnx.gz"
    vnnlib = folder / "vnnlib" / f"prop_{prop}.vnnlib.gz"
    data = certified(model, vnnlib, tmp_path / "proof.npz")
    assert check_files(data, *contents(model, vnnlib)).leaves >= boxes
    assert [step.kind for step in read_certificate(data).steps] == ["boxes"]
    tampered = changed(read_certificate(data), 0, "tree", lambda tree: tree[1:])
    with pytest.raises(InputError):
        check_files(write_certificate(tampered), *contents(model, vnnlib))
    coarse = changed(read_certificate(data), 0, "tree", lambda tree: tree[-1:])
    coarse = changed(coarse, 0, "cuts", lambda cuts: cuts[:0])
    coarse = changed(coarse, 0, "weights", lambda weights: weights[:1])
    with pytest.raises(InputError, match="not greater than 0"):
        check_files(write_certificate(coarse), *contents(model, vnnlib))


def test_the_checker_runs_without_torch_and_says_what_it_checked(tmp_path: Path) -> None:
    path = tmp_path / "proof.npz"
    path.write_bytes(deep())
    code = (
        "import sys; from fgp_vnn.cli.main import main; code = main(sys.argv[1:]);"
        "assert not {'torch', 'onnxruntime', 'onnx2torch'} & set(sys.modules); sys.exit(code)"
    )
    files = [str(BENCHMARK / part) for part in DEEP]
    done = subprocess.run(
        [sys.executable, "-c", code, "check-certificate", str(path), *files],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "9 ways to break the property" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("certificate accepted: unsat is proved")


def test_the_command_line_writes_a_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "proof.npz"
    files = [str(BENCHMARK / part) for part in PROVED[2]]
    assert main(["verify", *files, "--certificate", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    assert main(["check-certificate", str(path), *files]) == 0


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_files_in_another_order_are_told_the_right_one(
    order: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = tmp_path / "proof.npz"
    proof.write_bytes(deep())
    right = [str(proof), *(str(BENCHMARK / part) for part in DEEP)]
    assert main(["check-certificate", *(right[place] for place in order)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.rstrip().endswith(f"wrong order; use: fgp-vnn check-certificate {' '.join(right)}")


def test_a_verdict_without_a_proof_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "proof.npz"
    files = [str(BENCHMARK / part) for part in SAT[0]]
    assert main(["verify", *files, "--certificate", str(path)]) == 0
    assert "only an unsat has one, not sat" in capsys.readouterr().err
    assert not path.exists()


def test_an_unsat_that_the_checker_cannot_follow_is_loud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = Builder([1, 2])
    hidden = builder.op("HardSigmoid", builder.op("Gemm", "x", builder.random(2, 3)))
    model = builder.save(tmp_path / "net.onnx", builder.op("Gemm", hidden, builder.random(3, 1)))
    prop = tmp_path / "prop.vnnlib"
    names = ["X_0", "X_1", "Y_0"]
    text = [f"(declare-const {name} Real)" for name in names]
    text += [f"(assert (>= {x} -1.0)) (assert (<= {x} 1.0))" for x in names[:2]]
    prop.write_text("\n".join([*text, "(assert (>= Y_0 1000.0))"]))
    path = tmp_path / "proof.npz"
    assert main(["verify", str(model), str(prop), "--certificate", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("unsat") and "certificate" not in captured.out
    assert "no certificate: operator HardSigmoid" in captured.err and not path.exists()


def test_a_proof_that_takes_too_long_is_given_up() -> None:
    def late() -> None:
        raise NoCertificateError("time is up")

    files = contents(*DEEP)
    with pytest.raises(NoCertificateError, match="time is up"):
        prove(read_certificate(deep()).steps, *files, load_property(BENCHMARK / DEEP[1]), late)


def test_steps_that_prove_nothing_give_no_certificate() -> None:
    files = contents(*DEEP)
    with pytest.raises(NoCertificateError, match="nothing is proved"):
        prove((), *files, load_property(BENCHMARK / DEEP[1]), lambda: None)


@pytest.mark.parametrize("place", ["missing/proof.npz", "."])
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(BENCHMARK / part) for part in DEEP]
    assert main(["verify", *files, "--certificate", str(tmp_path / place)]) == 2
    assert "certificate" in capsys.readouterr().err
