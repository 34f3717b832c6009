"""The command line: verdicts, results files, and one clear line for everything that is wrong."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from network_models import Builder

from fgp_vnn.cli import main
from fgp_vnn.property import load_property
from fgp_vnn.results import read_results

ROOT = Path(__file__).resolve().parent.parent
BENCHMARK = ROOT / "vnncomp" / "benchmark"
MODEL = BENCHMARK / "onnx" / "dense_16x2_standard.onnx"
SAFE = BENCHMARK / "vnnlib" / "dense_16x2_standard_untargeted_0.01.vnnlib"
UNSAFE = BENCHMARK / "vnnlib" / "dense_16x2_standard_untargeted_0.06.vnnlib"

ENVIRONMENT: Mapping[str, str] = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
COMMAND = [sys.executable, "-m", "fgp_vnn.cli"]

Damage = Callable[[Path], list[str | Path]]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False
    )


def box(values: list[tuple[float, float]], outputs: int, constraint: str) -> str:
    """A property of VNN-LIB 1.0."""
    lines = [f"(declare-const X_{i} Real)" for i in range(len(values))]
    lines += [f"(declare-const Y_{i} Real)" for i in range(outputs)]
    for i, (low, high) in enumerate(values):
        lines += [f"(assert (>= X_{i} {low}))", f"(assert (<= X_{i} {high}))"]
    return "\n".join([*lines, f"(assert {constraint})", ""])


def small_model(folder: Path, *, weight: float | None = None) -> Path:
    """Four inputs, two outputs; one weight may be given."""
    builder = Builder([1, 4])
    first = np.random.default_rng(0).normal(size=(4, 3))
    if weight is not None:
        first[1, 1] = weight
    hidden = builder.op("Relu", builder.op("Gemm", "x", builder.const(first)))
    return builder.save(folder / "small.onnx", builder.op("Gemm", hidden, builder.random(3, 2)))


def small_property(folder: Path, inputs: int = 4, outputs: int = 2) -> Path:
    path = folder / "small.vnnlib"
    path.write_text(box([(-1, 1)] * inputs, outputs, "(<= Y_0 -100.0)"))
    return path


# What is wrong, the arguments that show it, and words of the line that says so.


def missing_model(folder: Path) -> list[str | Path]:
    return [folder / "none.onnx", SAFE]


def missing_property(folder: Path) -> list[str | Path]:
    return [MODEL, folder / "none.vnnlib"]


def directory(folder: Path) -> list[str | Path]:
    return [folder, SAFE]


def directory_of_properties(folder: Path) -> list[str | Path]:
    return [MODEL, folder]


def truncated_gzip(folder: Path) -> list[str | Path]:
    path = folder / "half.onnx.gz"
    path.write_bytes(gzip.compress(MODEL.read_bytes())[:-500])
    return [path, SAFE]


def truncated_property(folder: Path) -> list[str | Path]:
    path = folder / "half.vnnlib.gz"
    path.write_bytes(gzip.compress(SAFE.read_bytes())[:-50])
    return [MODEL, path]


def no_network(folder: Path) -> list[str | Path]:
    path = folder / "text.onnx"
    path.write_text("this is not a network\n")
    return [path, SAFE]


def external_data(folder: Path) -> list[str | Path]:
    import onnx

    model = onnx.load(str(MODEL))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    path = folder / "external.onnx"
    path.write_bytes(model.SerializeToString())
    return [path, SAFE]


def not_a_number(folder: Path) -> list[str | Path]:
    return [small_model(folder, weight=np.nan), small_property(folder)]


def infinite_weight(folder: Path) -> list[str | Path]:
    return [small_model(folder, weight=np.inf), small_property(folder)]


def too_many_inputs(folder: Path) -> list[str | Path]:
    return [small_model(folder), small_property(folder, inputs=5)]


def too_few_outputs(folder: Path) -> list[str | Path]:
    return [small_model(folder), small_property(folder, outputs=1)]


def another_network(folder: Path) -> list[str | Path]:
    return [MODEL, small_property(folder)]


def syntax_error(folder: Path) -> list[str | Path]:
    path = folder / "broken.vnnlib"
    path.write_text(SAFE.read_text().replace("(assert", "(asert", 1))
    return [MODEL, path]


def open_parenthesis(folder: Path) -> list[str | Path]:
    path = folder / "open.vnnlib"
    path.write_text(SAFE.read_text().rstrip()[:-1])
    return [MODEL, path]


def results_in_no_folder(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--results", folder / "none" / "out.txt"]


def results_is_a_directory(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--results", folder]


def timeout_of(text: str) -> Damage:
    return lambda folder: [MODEL, SAFE, "--timeout", text]


def seed_too_large(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--seed", "9" * 40]


def negative_seed(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--seed", "-1"]


BAD: list[tuple[Damage, tuple[str, ...]]] = [
    (missing_model, ("none.onnx", "does not exist")),
    (missing_property, ("none.vnnlib", "does not exist")),
    (directory, ("directory",)),
    (directory_of_properties, ("directory",)),
    (truncated_gzip, ("half.onnx.gz", "gzip")),
    (truncated_property, ("half.vnnlib.gz", "gzip")),
    (no_network, ("text.onnx", "not an ONNX file")),
    (external_data, ("external.onnx", "another file")),
    (not_a_number, ("small.onnx", "finite")),
    (infinite_weight, ("small.onnx", "finite")),
    (too_many_inputs, ("5 inputs", "small.onnx", "has 4")),
    (too_few_outputs, ("1 outputs", "has 2")),
    (another_network, ("small.vnnlib", "dense_16x2_standard.onnx")),
    (syntax_error, ("broken.vnnlib", "asert")),
    (open_parenthesis, ("open.vnnlib",)),
    (results_in_no_folder, ("none", "does not exist")),
    (results_is_a_directory, ("directory",)),
    (timeout_of("-5"), ("--timeout", "-5", "positive")),
    (timeout_of("0"), ("--timeout", "positive")),
    (timeout_of("nan"), ("--timeout", "nan", "positive")),
    (timeout_of("inf"), ("--timeout", "inf", "positive")),
    (timeout_of("soon"), ("--timeout", "soon", "positive")),
    (timeout_of(""), ("--timeout", "positive")),
    (seed_too_large, ("seed",)),
    (negative_seed, ("seed", "-1")),
]


def one_clear_line(stderr: str, words: tuple[str, ...]) -> None:
    (line,) = stderr.splitlines()
    assert line.startswith("fgp-vnn: ")
    assert "Traceback" not in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(("damage", "words"), BAD, ids=[b[0].__name__ for b in BAD])
def test_bad_input_is_one_clear_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Damage, words: tuple[str, ...]
) -> None:
    arguments = damage(tmp_path)
    results = tmp_path / "results.txt"
    results.write_text("unsat\n")
    if "--results" not in arguments:
        arguments += ["--results", results]
    assert main(["verify", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    one_clear_line(err, words)
    assert out == ""
    assert results.read_text() == "unsat\n"  # of an earlier run, and still there
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("damage", "words"), [BAD[0], BAD[4], BAD[8], BAD[13]], ids=lambda b: getattr(b, "__name__", "")
)
def test_bad_input_looks_the_same_from_outside(
    tmp_path: Path, damage: Damage, words: tuple[str, ...]
) -> None:
    done = run("verify", *damage(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    one_clear_line(done.stderr, words)


@pytest.mark.parametrize("damage", [missing_model, no_network, too_many_inputs, syntax_error])
def test_supports_declines_what_verify_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Damage
) -> None:
    assert main(["supports", *map(str, damage(tmp_path))]) == 2
    one_clear_line(capsys.readouterr().err, ())


def test_supports_accepts_what_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["supports", str(MODEL), str(SAFE)]) == 0
    assert capsys.readouterr().out == "supported\n"


def test_networks_lists_sizes_and_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = Builder([1, 3])
    relu = builder.op("Relu", builder.op("Gemm", "x", builder.random(3, 2), builder.random(2)))
    builder.save(tmp_path / "a.onnx", relu)
    builder.save(tmp_path / "b.onnx", builder.op("Sigmoid", relu))
    assert main(["networks", str(tmp_path / "a.onnx")]) == 0
    capsys.readouterr()
    assert main(["networks", str(tmp_path)]) == 2
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.endswith("a.onnx: 3 inputs, 2 outputs, 2 neurons in 1 layer; 1 Gemm, 1 Relu")
    assert second.startswith(f"{tmp_path / 'b.onnx'}: refused: operator Sigmoid")
    assert last == "2 networks: 1 can be read, 1 refused"


def test_networks_refuses_a_folder_without_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["networks", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["verify"],
        ["verify", "a.onnx"],
        ["prove", "a", "b"],
        ["verify", "a", "b", "--engine", "x"],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert "error:" in capsys.readouterr().err.splitlines()[-1]


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    done = run("verify", MODEL, SAFE, "--results", folder / "out.txt")
    folder.chmod(stat.S_IRWXU)
    assert done.returncode == 2
    one_clear_line(done.stderr, ("out.txt",))


def test_unsat_from_outside(tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    done = run("verify", MODEL, SAFE, "--timeout", "60", "--results", results)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unsat by ")
    assert results.read_text() == "unsat\n"


def test_sat_from_outside_is_confirmed_by_the_written_digits(tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    done = run("verify", MODEL, UNSAFE, "--timeout", "60", "--results", results, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["status"] == "sat"
    confirm_results(results, MODEL, UNSAFE)
    written = read_results(results)
    assert written.x is not None and written.y is not None
    assert said["counterexample"]["x"] == written.x.tolist()
    assert said["counterexample"]["y"] == written.y.tolist()


def confirm_results(results: Path, model: Path, prop: Path) -> None:
    """What the competition's judge does with a counterexample, with no tolerance."""
    read = read_results(results)
    assert read.status == "sat" and read.x is not None and read.y is not None
    x = read.x.astype(np.float32)
    assert np.array_equal(x.astype(np.float64), read.x)  # nothing was lost in the digits
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    shape = [d if isinstance(d, int) else 1 for d in session.get_inputs()[0].shape]
    (y,) = session.run(None, {session.get_inputs()[0].name: x.reshape(shape)})
    assert np.array_equal(y.reshape(-1).astype(np.float64), read.y)
    assert load_property(prop).broken_by(read.x, read.y)


def test_json_tells_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(MODEL), str(SAFE), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "unsat"
    assert said["decided_by"] in ("bounds", "walk", "split")
    assert said["seconds"]["total"] >= said["seconds"]["load"] > 0
    assert isinstance(said["statistics"], dict)


def test_with_an_lp_the_programs_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = ["--engine", "walk", "--no-attack", "--no-alternate", "--lp"]
    prop = BENCHMARK / "vnnlib" / "dense_32x2_mmr_conjunction_0.2.vnnlib"
    model = BENCHMARK / "onnx" / "dense_32x2_mmr.onnx"
    assert main(["verify", str(model), str(prop), "--json", *search[:-1]]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "unknown"
    assert main(["verify", str(model), str(prop), "--json", *search]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "sat" and said["statistics"]["lps"] > 0
    points = tmp_path / "points.npy"
    np.save(points, np.full((2, 4), 0.5, np.float32))
    small = small_model(tmp_path)
    command = ["certify", str(small), str(points), "--epsilon", "0.1", "--json", *search]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["robust"] + said["not_robust"] == 2 and said["lps"] >= 0


@pytest.mark.parametrize("command", ["verify", "certify"])
def test_without_highs_the_extra_is_named(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    points = tmp_path / "points.npy"
    np.save(points, np.zeros((1, 64), np.float32))
    rest = [str(SAFE)] if command == "verify" else [str(points), "--epsilon", "0.01"]
    assert main([command, str(MODEL), *rest]) == 0
    capsys.readouterr()
    assert main([command, str(MODEL), *rest, "--lp"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "pip install 'fgp-vnn[lp]'" in error


def test_a_verdict_without_a_decision_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "out.txt"
    arguments = [str(MODEL), str(SAFE), "--engine", "attack", "--results", str(results)]
    assert main(["verify", *arguments]) == 0
    assert capsys.readouterr().out.startswith("unknown in ")
    assert results.read_text() == "unknown\n"


def test_help_needs_no_torch() -> None:
    program = (
        "import sys\nfrom fgp_vnn.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "slow = {'torch', 'onnx', 'onnxruntime', 'numpy', 'onnx2torch'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    for arguments in (["--help"], ["--version"], ["verify", "--help"], ["supports", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "fgp-vnn" in done.stdout


def hard_instance(folder: Path) -> list[str | Path]:
    """Far too many regions to be walked, and bounds that leave it open."""
    builder = Builder([1, 20])
    at = "x"
    for before, after in ((20, 60), (60, 60), (60, 60)):
        at = builder.op("Relu", builder.op("Gemm", at, builder.random(before, after)))
    model = builder.save(folder / "hard.onnx", builder.op("Gemm", at, builder.random(60, 1)))
    prop = folder / "hard.vnnlib"
    prop.write_text(box([(-1, 1)] * 20, 1, "(<= Y_0 -600.0)"))
    return [model, prop, "--engine", "walk", "--no-attack"]


def loaded(process: subprocess.Popen[str], library: str) -> bool:
    maps = Path(f"/proc/{process.pid}/maps")
    return process.poll() is not None or library in maps.read_text(errors="replace")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("library", ["libtorch", "onnxruntime_pybind"])
def test_an_interrupt_ends_it_with_130_and_one_line(tmp_path: Path, library: str) -> None:
    """While torch is being imported, where exceptions get lost, and during the work."""
    results = tmp_path / "out.txt"
    results.write_text("timeout\n")
    arguments = [*COMMAND, "verify", *map(str, hard_instance(tmp_path)), "--results", str(results)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        while not loaded(process, library):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "fgp-vnn: interrupted\n")
    assert results.read_text() == "timeout\n"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_interrupt_between_commands_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fgp_vnn.api.verify", interrupted)
    assert main(["verify", str(MODEL), str(SAFE)]) == 130
    assert capsys.readouterr().err == "fgp-vnn: interrupted\n"


def test_a_timeout_is_a_verdict(tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    arguments = ["verify", *map(str, hard_instance(tmp_path)), "--results", str(results)]
    assert main([*arguments, "--timeout", "0.5"]) == 0
    assert results.read_text() == "timeout\n"


@pytest.fixture
def real_tool(tmp_path: Path) -> Mapping[str, str]:
    """The environment in which the competition scripts find this checkout."""
    path = tmp_path / "fgp-vnn"
    path.write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" -m fgp_vnn.cli "$@"\n')
    path.chmod(0o755)
    return {**ENVIRONMENT, "FGP_VNN": str(path), "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize(("prop", "status"), [(SAFE, "unsat"), (UNSAFE, "sat")])
def test_the_competition_scripts_run_the_real_tool(
    real_tool: Mapping[str, str], tmp_path: Path, prop: Path, status: str
) -> None:
    results = tmp_path / "out.txt"
    instance = ["v1", "digits", str(MODEL), str(prop)]
    scripts = ROOT / "vnncomp"
    for arguments in (
        ["prepare_instance.sh", *instance],
        ["run_instance.sh", *instance, str(results), "60"],
    ):
        command = ["bash", str(scripts / arguments[0]), *arguments[1:]]
        done = subprocess.run(
            command, capture_output=True, text=True, env=real_tool, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert read_results(results).status == status
    if status == "sat":
        confirm_results(results, MODEL, prop)


def test_prepare_declines_what_the_real_tool_cannot_read(
    real_tool: Mapping[str, str], tmp_path: Path
) -> None:
    script = ROOT / "vnncomp" / "prepare_instance.sh"
    command = ["bash", str(script), "v1", "digits", *map(str, no_network(tmp_path))]
    done = subprocess.run(
        command, capture_output=True, text=True, env=real_tool, timeout=120, check=False
    )
    assert done.returncode == 1
    one_clear_line(done.stderr, ("text.onnx",))
