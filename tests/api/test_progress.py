"""The bar of long work: in a terminal, and in a notebook without any widgets."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fgp_vnn.api import progress


def work(count: int) -> None:
    with progress.counted(count, None, single=False) as step:
        for _ in range(count):
            step()


def test_a_notebook_shows_a_bar_of_the_browser_and_clears_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []

    def display(text: str, display_id: bool) -> Any:
        shown.append(text)
        return SimpleNamespace(update=shown.append)

    fake = ModuleType("IPython.display")
    vars(fake).update(HTML=str, display=display)
    for name, module in (("ipykernel", ModuleType("ipykernel")), ("IPython.display", fake)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    work(3)
    assert shown == []  # quick work shows none
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    work(3)
    assert "1 of 3" in shown[0] and "3 of 3" in shown[2] and shown[3:] == [""]


def test_a_terminal_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    work(2)
    assert "inputs" in capsys.readouterr().err
