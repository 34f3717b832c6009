"""Files on the command line in the wrong order are answered with the right one."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.file_order import check_order
from fgp_vnn.cli.main import main
from tests.helpers.command_line import MODEL, SAFE, one_clear_line

KINDS = ("certificate", "network", "property", "results")
SWAPPED: dict[str, list[str | Path]] = {
    "verify": [SAFE, MODEL],
    "supports": [SAFE, MODEL],
    "bounds": [SAFE, MODEL],
    "certify": ["points.npz", MODEL, "--epsilon", "0.1"],
    "radius": ["points.npz", MODEL],
    "property": ["points.npz", MODEL, "--epsilon", "0.1", "--out", "folder"],
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A file of each kind whose name does not say what it is."""
    paths = {kind: tmp_path / f"{kind}.dat" for kind in KINDS}
    paths["certificate"].write_bytes(b"PK\x03\x04")
    paths["network"].write_bytes(b"\x08\x08\x12\x07pytorch")
    paths["property"].write_text("\n; a comment\n(declare-const X_0 Real)\n")
    paths["results"].write_text("sat\n((X_0 1.0))\n")
    return paths


@pytest.mark.parametrize("command", SWAPPED)
def test_swapped_files_are_answered_with_the_right_command(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("points.npz", x=np.zeros((1, 64), np.float32))
    first, second, *rest = map(str, SWAPPED[command])
    assert main([command, first, second, *rest]) == 2
    out, err = capsys.readouterr()
    one_clear_line(err, (f"wrong order; use: fgp-vnn {command} {second} {first}",))
    assert out == "" and not Path("folder").exists()


def test_check_has_the_results_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "out.txt"
    results.write_text("sat\n")
    assert main(["check", str(MODEL), str(SAFE), str(results)]) == 2
    one_clear_line(capsys.readouterr().err, (f"fgp-vnn check {results} {MODEL} {SAFE}",))


@pytest.mark.parametrize("packed", [False, True])
def test_the_first_bytes_tell_what_a_name_does_not(files: dict[str, Path], packed: bool) -> None:
    if packed:
        files["property"].write_bytes(gzip.compress(files["property"].read_bytes()))
    wanted = ("results", "network", "property")
    check_order("check", wanted, [files[kind] for kind in wanted])
    given = [files[kind] for kind in ("property", "results", "network")]
    with pytest.raises(InputError, match=r"results\.dat \S*network\.dat \S*property\.dat$"):
        check_order("check", wanted, given)


def test_a_file_of_no_known_kind_stands_for_the_one_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"use: fgp-vnn verify none p\.vnnlib$"):
        check_order("verify", ("network", "property"), [Path("p.vnnlib"), Path("none")])


def test_the_right_command_can_be_pasted_into_a_shell() -> None:
    with pytest.raises(InputError, match=r"use: fgp-vnn verify 'my net\.onnx' p\.vnnlib$"):
        check_order("verify", ("network", "property"), [Path("p.vnnlib"), Path("my net.onnx")])


def test_what_no_order_makes_right_is_left_to_the_readers(
    files: dict[str, Path], tmp_path: Path
) -> None:
    wanted = ("network", "property")
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b\x08")
    for given in (
        [Path("a.onnx"), Path("b.onnx")],
        [Path("a.vnnlib"), Path("b.vnnlib")],
        [tmp_path, Path("none")],
        [broken, files["property"]],
        [Path("[('f', 'a.onnx'), ('g', 'b.onnx')]"), Path("p.vnnlib")],
        [Path("a" * 5000), Path("p.vnnlib")],
    ):
        check_order("verify", wanted, given)
