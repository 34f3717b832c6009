"""The table of small models: each loads from file, module and proto, agrees with torch, and is
certified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import fgp_vnn
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.network.onnx.load import OPERATORS
from tests.helpers.model_table import OPSETS, TRACED, Row, as_markdown, rows
from tests.helpers.places import ROOT

ROWS = rows()


def _loaded(row: Row, folder: Path) -> dict[str, LoadedNetwork]:
    """The model in each of its forms, by its name; of two inputs, both vary. What is no file has
    no exporter that was chosen, so it is loaded with one of them only."""
    path = row.save(folder)
    choice: dict[str, Any] = {"outputs": row.architecture.outputs}
    x: Any = np.zeros((1, *row.architecture.shape))
    if row.arguments > 1:
        choice["inputs"], x = "all", (x, x)
    loaded = {"file": fgp_vnn.load_model(path, x, **choice)}
    if row.exporter == TRACED:
        loaded["module"] = fgp_vnn.load_model(row.module(), x, **choice)
    else:
        loaded["proto"] = fgp_vnn.load_model(onnx.load(str(path)), x, **choice)
    return loaded


def _expected(row: Row, points: np.ndarray[Any, Any]) -> Any:
    """What torch gives, [points, outputs]."""
    module, shape = row.module(), row.architecture.shape
    with torch.no_grad():
        parts = torch.from_numpy(points).reshape(len(points), row.arguments, *shape)
        result: Any = module(*parts.unbind(1))
    chosen = result if row.architecture.outputs is None else result[row.architecture.outputs]
    return chosen.reshape(len(points), -1).numpy()


@pytest.mark.parametrize("row", ROWS, ids=[str(row) for row in ROWS])
def test_model_loads_agrees_with_torch_and_is_certified(row: Row, tmp_path: Path) -> None:
    loaded = _loaded(row, tmp_path)
    assert row.beside == (len(list(tmp_path.iterdir())) == 2)
    inputs = row.arguments * int(np.prod(row.architecture.shape))
    points = np.random.default_rng(0).random((3, inputs)).astype(np.float32)
    expected = _expected(row, points)
    for model in loaded.values():
        np.testing.assert_allclose(model.runtime.run_many(points), expected, rtol=1e-4, atol=1e-5)
        ours = model.network(torch.from_numpy(points).double()).numpy()
        if not model.comparisons_only:
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
    result = fgp_vnn.certify(loaded["file"], points[0], epsilon=1e-4)
    assert isinstance(result, fgp_vnn.Robustness) and result.status == "robust"


def test_table_has_all_opsets_and_weights_in_both_places() -> None:
    for exporter, opsets in OPSETS.items():
        of = [row for row in ROWS if row.exporter == exporter]
        assert {row.opset for row in of} == set(opsets)
        assert {row.beside for row in of} == {True, False}


def test_the_page_about_models_shows_the_table() -> None:
    page = (ROOT / "docs" / "howto" / "model.md").read_text()
    assert as_markdown() in page, "run `python -m tests.helpers.model_table`"


def test_the_page_about_models_lists_the_operators() -> None:
    page = (ROOT / "docs" / "howto" / "model.md").read_text()
    assert ": " + ", ".join(sorted(OPERATORS)) + ". " in page
