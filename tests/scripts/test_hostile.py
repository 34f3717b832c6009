"""The adversary: it finds nothing wrong, and it finds every kind of liar."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hostile
from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import check_files
from hostile_cases.case import Ball
from hostile_cases.certificates import OVERFLOWING, SHAPES, digests, overflowing, small
from hostile_cases.exact import ExactNetwork
from hostile_cases.forging import pack, stamped
from hostile_cases.formula import Formula
from hostile_cases.kinds import KINDS
from hostile_cases.oracle import Oracle, Program, ball_segments, in_ball
from hostile_cases.pool import Task, run_all
from hostile_cases.tool import Answer, Options, Tool, command_options, fgp_vnn_tool
from tests.helpers.network_models import Builder

pytestmark = pytest.mark.filterwarnings("ignore")  # of the verifier, at such magnitudes
ASKED = [kind for kind in KINDS if kind not in ("certificates", "radii")]


def silent() -> Tool:
    """Never says anything that could be wrong, but for its proofs, which are true."""
    unknown = Answer("unknown")
    return Tool(
        lambda model, prop, options: unknown,
        lambda model, ball, options: unknown,
        lambda certificate, model, prop: Answer("refused"),
        fgp_vnn_tool(30).prove,
        lambda model, ball, options: unknown,
    )


def made_up(model: Path, prop: Path, options: Options) -> Answer:
    """Sat at 0, with an output that nobody has computed."""
    program = Program(model.read_bytes())
    sizes = [part.count(b"declare-const") for part in prop.read_bytes().split(b"Y_0 Real")]
    x = np.zeros(max(sizes[0] - 1, 1))
    try:
        return Answer("sat", x, program(x) + np.float32(1))
    except Exception:  # another number of inputs
        return Answer("sat")


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_is_wrong(kind: str, tmp_path: Path) -> None:
    arguments = ["--kind", kind, "--cases", "2", "--out", str(tmp_path)]
    assert hostile.main(arguments, fgp_vnn_tool(0.1)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_who_says_nothing_is_never_wrong(kind: str, tmp_path: Path) -> None:
    assert hostile.main(["--kind", kind, "--cases", "3", "--out", str(tmp_path)], silent()) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("lie", ["unsat", "sat", "crash"])
def test_a_liar_is_caught_and_can_be_asked_again(
    kind: str, lie: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify = made_up if lie == "sat" else lambda model, prop, options: Answer(lie, reason="bug")
    liar = replace(silent(), verify=verify)
    assert hostile.main(["--kind", kind, "--cases", "3", "--out", str(tmp_path)], liar) == 1
    assert "3 cases: " in capsys.readouterr().out
    folder = sorted(tmp_path.iterdir())[0]
    assert {"model.onnx", "prop.vnnlib", "repeat.sh", "why.txt"} <= {
        path.name for path in folder.iterdir()
    }
    assert "fgp-vnn verify model.onnx prop.vnnlib" in (folder / "repeat.sh").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attack": False, "lp": True}, " --no-attack --lp"),
        ({"attack": True, "lp": False, "alternate": False}, " --no-alternate"),
        ({"float32_semantics": True, "engine": "walk"}, " --float32-semantics --engine walk"),
    ],
)
def test_a_command_has_the_options_that_differ_from_the_defaults(
    options: Options, words: str
) -> None:
    assert command_options(options) == words


@pytest.mark.parametrize("status", ["robust", "not_robust"])
def test_a_wrong_answer_about_a_ball_is_caught(status: str, tmp_path: Path) -> None:
    def certify(model: Path, ball: Ball, options: Options) -> Answer:
        x = np.array(ball.center)
        return Answer(status, x, Program(model.read_bytes())(x))

    liar = replace(silent(), certify=certify)
    assert (
        hostile.main(["--kind", "magnitudes", "--cases", "30", "--out", str(tmp_path)], liar) == 1
    )


@pytest.mark.parametrize("lie", ["lower", "upper", "crossed", "crash"])
def test_a_wrong_end_of_a_radius_is_caught(lie: str, tmp_path: Path) -> None:
    def radius(model: Path, ball: Ball, options: Options) -> Answer:
        x = np.array(ball.center)
        if lie == "crash":
            return Answer("crash", reason="bug")
        if lie == "lower":
            return Answer("robust", ends=(ball.epsilon, np.inf))
        ends = (2 * ball.epsilon, ball.epsilon) if lie == "crossed" else (0.0, ball.epsilon)
        return Answer("unknown", x, Program(model.read_bytes())(x), ends=ends)

    liar = replace(silent(), radius=radius)
    assert hostile.main(["--kind", "radii", "--cases", "12", "--out", str(tmp_path)], liar) == 1
    folder = sorted(tmp_path.iterdir())[0]
    assert "fgp-vnn radius model.onnx point.csv" in (folder / "repeat.sh").read_text()


@pytest.mark.parametrize("status", ["accepted", "crash"])
def test_a_bad_checker_is_caught(status: str, tmp_path: Path) -> None:
    bad = replace(silent(), check=lambda *files: Answer(status, reason="bug"))
    assert hostile.main(["--kind", "certificates", "--cases", "1", "--out", str(tmp_path)], bad)
    (folder,) = tmp_path.iterdir()
    assert (folder / "certificate.npz").is_file()


def test_forged_certificates_are_well_formed(tmp_path: Path) -> None:
    """Made out to the same claim in other words, a certificate is still a proof."""
    tool = fgp_vnn_tool(30)
    for index in range(len(SHAPES)):
        true, arrays = small(index, False, tool.prove)
        other = true[0], true[1] + b"; the same\n"
        data = pack(stamped(arrays, digests(true), digests(other)))
        paths = [tmp_path / name for name in ("c.npz", "m.onnx", "p.vnnlib")]
        for path, part in zip(paths, (data, *other), strict=True):
            path.write_bytes(part)
        assert tool.check(*paths).status == "accepted"


def test_a_checker_that_takes_an_overflow_for_a_proof_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate of the same form is made out to a claim whose bound is +inf, and false."""
    tool = fgp_vnn_tool(30)
    true, arrays = small(OVERFLOWING, False, tool.prove)
    case = overflowing(np.random.default_rng(0))
    claim = case.network, case.property
    assert Oracle(case).real is not None
    data = pack(stamped(arrays, digests(true), digests(claim)))
    assert "bound -inf, which" in refusal(data, claim)
    for module in ("check", "unsafe", "bounds"):
        monkeypatch.setattr(f"fgp_vnn.certificate.checker.{module}.proved", lambda bound: bound)
    assert "bound inf, which" in refusal(data, claim)


def refusal(data: bytes, claim: tuple[bytes, bytes]) -> str:
    with pytest.raises(InputError) as refused:
        check_files(data, *claim)
    return str(refused.value)


def test_a_dead_process_costs_its_own_case(capfd: pytest.CaptureFixture[str]) -> None:
    tasks = [Task("no such kind", 0, 0), Task("certificates", 0, 0)]
    done = dict(run_all(tasks, jobs=1, limit=0.1, patience=300))
    assert [trial.status for trial in done[tasks[0]]] == ["crash"]
    assert [trial.engine for trial in done[tasks[1]]] == ["checker"]
    capfd.readouterr()


def test_a_formula_is_evaluated_exactly() -> None:
    first = b"(assert (<= (* 1e308 Y_0) 1e308)) ; (assert (<= Y_0 0))\r"
    formula = Formula.of(first + b"(assert (or (< X_0 0) (>= X_0 1)))")
    one = Fraction(1)
    assert formula.holds([one], [one])
    assert not formula.holds([one], [one + Fraction(1, 10**60)])
    assert not formula.holds([one / 2], [one])
    assert formula.gaps([one], [one])[1:] == [one, 0]
    second = Formula.of(
        b"(vnnlib-version <2.0>)(declare-network N (declare-input X Real [2])"
        b"(declare-output Y Real [1,2]))(assert (== Y[0,1] (- X[1] 1.0 1.0)))"
    )
    assert second.holds([one, 3 * one], [5 * one, one])


def test_the_whole_range_of_one_input_is_known() -> None:
    """A spike of 1 at 0.3, 1e-30 wide at its foot."""
    builder = Builder([1, 1])
    at = np.float32(0.3)
    sides = builder.op("Gemm", "x", builder.const([[1, -1]]), builder.const([-at, at]))
    weight = builder.const(np.full((2, 1), -1e30))
    spike = builder.op("Gemm", builder.op("Relu", sides), weight, builder.const([1.0]))
    exact = ExactNetwork(builder.model(builder.op("Relu", spike)).SerializeToString())
    ends = [Fraction(0)], [Fraction(1)]
    found = exact.point_where(Formula.of(b"(assert (>= Y_0 1))"), *ends)
    assert found == ([Fraction(float(at))], [Fraction(1)])
    inside = exact.point_where(Formula.of(b"(assert (and (> Y_0 0.5) (< Y_0 0.75)))"), *ends)
    assert inside is not None and exact(inside[0]) == inside[1]
    assert exact.point_where(Formula.of(b"(assert (> Y_0 1))"), *ends) is None


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_segments_of_a_ball_end_on_its_edge(norm: str) -> None:
    ball = Ball((1.0, 0.0, -2.0), 0.5, norm)  # type: ignore[arg-type]
    for ends in ball_segments(ball):
        for end in ends:
            x = np.array([float(v) for v in end])
            inner = ball.center + (x - ball.center) * (1 - 1e-9)
            assert in_ball(inner, ball)
            assert not in_ball(ball.center + (x - ball.center) * (1 + 1e-9), ball)
