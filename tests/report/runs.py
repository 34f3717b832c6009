"""Finished runs on disk for the tests of reports, with everything that a report can show."""

from __future__ import annotations

from pathlib import Path

from fgp_vnn.bench.comparison import write_comparison
from fgp_vnn.bench.journal import open_journal
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.timing import Timing
from tests.helpers.bench_folders import identity

SIDE = 14
HOSTILE = "<script>alert(1)</script>"  # a name that would run if it were not escaped


def make_comparison(folder: Path) -> Path:
    """Two tools, 30 instances: one wrong verdict, one image counterexample, one hostile name."""
    benchmark = _image_benchmark(folder / "images")
    out = folder / "out"
    for tool in ("ours", "other"):
        with open_journal(out / tool, {"benchmark": str(benchmark)}) as journal:
            for number in range(30):
                record, text = _result(tool, number)
                journal.append(record, text)
    write_comparison(out, str(benchmark), 2026, timings(), {"ours": "abc123"}, [])
    return out


def timings() -> dict[str, Timing]:
    """Two tools that were timed alike."""
    return {
        "ours": Timing("cold", "a machine", (1.0, 1.1)),
        "other": Timing("cold", "a machine", (2.0, 2.2)),
    }


def _result(tool: str, number: int) -> tuple[Record, str]:
    name = HOSTILE if number == 29 else f"onnx/{number}.onnx"
    common = ("images", name, "vnnlib/p.vnnlib", 60.0)
    ours = tool == "ours"
    if number == 0 and ours:
        values = "\n".join(f"(X_{i} {0.6 if i == 3 else 0.5})" for i in range(SIDE * SIDE))
        text = f"sat\n({values})\n"
        return Record(*common, "sat", 0.3, decided_by="attack", confirmed=True), text
    if number == 0:
        return Record(*common, "unsat", 4.0), ""
    if number % 5 == 4:
        return Record(*common, "timeout", 60.0, reason="time is up"), ""
    seconds = (0.1 if ours else 0.4) * number
    engine = ("bounds" if number % 2 else "walk") if ours else ""
    return Record(*common, "unsat", seconds, decided_by=engine), ""


def _image_benchmark(folder: Path) -> Path:
    size = SIDE * SIDE
    (folder / "onnx").mkdir(parents=True)
    (folder / "vnnlib").mkdir()
    (folder / "onnx" / "0.onnx").write_bytes(identity(size, [1, 1, SIDE, SIDE]))
    lines = [f"(declare-const X_{i} Real)" for i in range(size)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(size)]
    for i in range(size):
        lines += [f"(assert (>= X_{i} 0.4))", f"(assert (<= X_{i} 0.6))"]
    lines.append("(assert (>= Y_3 Y_0))")
    (folder / "vnnlib" / "p.vnnlib").write_text("\n".join(lines))
    (folder / "instances.csv").write_text("onnx/0.onnx,vnnlib/p.vnnlib,60\n")
    return folder
