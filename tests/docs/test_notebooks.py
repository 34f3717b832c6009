"""The notebooks: each runs from top to bottom, and what is kept of them is what they say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.helpers.places import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
# What the cells print and show, whatever the machine.
SAID = {
    "classifier": ("'not_robust': 4", "Robustness: not robust", "image/png", "Radius: "),
    "comparison": ("points", "report.html", "repeat.sh", "whole"),
    "controller": ("unsat by bounds", "Checked(cases=1", "sat by attack", "image/png"),
}


def tool() -> ModuleType:
    """docs/notebooks.py."""
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def outputs(notebook: dict[str, Any]) -> str:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return json.dumps([cell["outputs"] for cell in cells])


def test_there_are_three_notebooks() -> None:
    assert set(NAMES) == set(SAID)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_from_top_to_bottom(
    name: str, tmp_path: Path, warm_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("nbclient", "ipykernel", "matplotlib", "jinja2", "onnxscript"):
        if (
            importlib.util.find_spec(module) is None
        ):  # imported here, a kernel's modules would outlast the test
            pytest.skip(f"needs pip install {module}")
    kernel = tmp_path / "python"
    # The parent of a copy is not the one who asks for it, which a kernel would end with.
    kernel.write_text(f'#!/bin/sh\nunset JPY_PARENT_PID\nexec "{warm_python}" "$@"\n')
    kernel.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(kernel))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as kernels do
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shown = outputs(tool().run(FOLDER / f"{name}.ipynb"))
    for words in SAID[name]:
        assert words in shown, words


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_of_a_notebook_shows_every_cell_and_no_place_of_a_machine(name: str) -> None:
    notebook = kept(name)
    shown = outputs(notebook)
    for words in SAID[name]:
        assert words in shown, words
    assert "/tmp/" not in shown and str(Path.home()) not in shown and "Traceback" not in shown
    page = tool().markdown(notebook)
    assert page.startswith("# ") and page.count("```python") >= 5
