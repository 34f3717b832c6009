from __future__ import annotations

import io

from rich.console import Console

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.progress import LiveView, PlainLines, View, view
from fgp_vnn.bench.record import Record

INSTANCE = Instance("cat", "net[1].onnx", "p", 60.0, ("net",), "p")
WRONG = Record("cat", "net[1].onnx", "p", 60.0, "unsat", 0.5, expected="sat")
RIGHT = Record("cat", "net[1].onnx", "p", 60.0, "unsat", 0.5, decided_by="bounds")


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)


def text(of: Console) -> str:
    assert isinstance(of.file, io.StringIO)
    return of.file.getvalue()


def test_the_view_suits_the_console() -> None:
    assert isinstance(view(console(terminal=True), 1, 1, quiet=False), LiveView)
    assert type(view(console(terminal=False), 1, 1, quiet=False)) is PlainLines
    assert type(view(console(terminal=True), 1, 1, quiet=True)) is View


def test_a_plain_line_says_how_far_what_and_why() -> None:
    out = console(terminal=False)
    with view(out, 2, 1, quiet=False) as shown:
        shown.started(0, INSTANCE)
        shown.finished(0, RIGHT)
    assert text(out) == "[1/2] unsat 0.50 s  cat net[1].onnx p  (bounds)\n"


def test_a_long_line_stays_one_line() -> None:
    out = console(terminal=False)
    record = Record("cat", "n" * 300, "p", 60.0, "error", 0.5, reason="r" * 300)
    with view(out, 2, 1, quiet=False) as shown:
        shown.finished(0, record)
    assert len(text(out).splitlines()) == 1


def test_quiet_still_shouts_a_contradiction() -> None:
    out = console(terminal=False)
    with view(out, 2, 1, quiet=True) as shown:
        shown.finished(0, RIGHT)
        assert text(out) == ""
        shown.finished(0, WRONG)
    assert text(out) == "WRONG VERDICT: cat net[1].onnx p: unsat, expected sat\n"


def test_the_live_view_counts_and_names_what_each_worker_is_on() -> None:
    out = console(terminal=True)
    with view(out, 10, 2, quiet=False) as shown:
        shown.started(0, INSTANCE)
        shown.finished(0, RIGHT)
        shown.started(1, INSTANCE)
    last = text(out)
    assert "1/10" in last
    assert "solved 1   sat 0   unsat 1   unknown 0   timeout 0   error 0" in last
    assert "0: idle" in last
    assert "/ 60 s  cat net[1].onnx p" in last


def test_the_live_view_shouts_as_well() -> None:
    out = console(terminal=True)
    with view(out, 10, 1, quiet=False) as shown:
        shown.finished(0, WRONG)
    assert "WRONG VERDICT" in text(out)
