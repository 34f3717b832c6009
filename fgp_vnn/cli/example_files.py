"""Files to try the commands with: a classifier, a controller, their properties, and a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes

CLASSIFIER = "dense_24x3_pgd"
SAFE, BROKEN = f"{CLASSIFIER}_untargeted_0.02", f"{CLASSIFIER}_untargeted_0.15"
NETWORKS = (CLASSIFIER, "conv_small_standard")  # whose instances are in the small folder
CONTROLLER = """<ir_version: 8, opset_import: ["": 13]>
controller (float[1, 2] state) => (float[1, 1] force) <
  float[2, 2] w = {1.2, -1.2, 0.8, -0.8}, float[2] b = {0.0, 0.0},
  float[2, 1] v = {-1.0, 1.0}, float[1] c = {0.0}> {
  z = Gemm(state, w, b)
  a = Relu(z)
  y = Gemm(a, v, c)
  low = Constant <value: tensor = float {-1.0}> ()
  high = Constant <value: tensor = float {1.0}> ()
  force = Clip(y, low, high)
}"""
PUSHES_BACK = """; while the angle is positive, the force must be negative
(declare-const X_0 Real)  ; angle
(declare-const X_1 Real)  ; speed
(declare-const Y_0 Real)  ; force
(assert (>= X_0 0.5))
(assert (<= X_0 1.0))
(assert (>= X_1 -0.2))
(assert (<= X_1 0.2))
(assert (>= Y_0 0.0))
"""


def write_examples(folder: Path, benchmark: Path) -> list[str]:
    """Write the files into a folder that is new or empty; their names."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: name a new folder, or an empty one")
    import onnx.parser

    small = folder / "benchmark"
    try:
        for part in ("onnx", "vnnlib"):
            (small / part).mkdir(parents=True)
        shutil.copyfile(benchmark / "onnx" / f"{CLASSIFIER}.onnx", folder / "model.onnx")
        shutil.copyfile(benchmark / "vnnlib" / f"{SAFE}.vnnlib", folder / "property.vnnlib")
        shutil.copyfile(benchmark / "vnnlib" / f"{BROKEN}.vnnlib", folder / "broken.vnnlib")
        shutil.copyfile(benchmark / "points.npz", folder / "points.npz")
        _write_small(small, benchmark)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error
    model = onnx.parser.parse_model(CONTROLLER)
    write_bytes(folder / "controller.onnx", model.SerializeToString(), "network")
    write_bytes(folder / "pushes_back.vnnlib", PUSHES_BACK.encode(), "property")
    return sorted(path.name for path in folder.iterdir())


def _write_small(small: Path, benchmark: Path) -> None:
    """The instances of two networks, with their known answers, as a folder of its own."""
    networks = {f"onnx/{name}.onnx" for name in NETWORKS}
    for name, head in (("instances.csv", 0), ("ground_truth.csv", 1)):
        lines = (benchmark / name).read_text().splitlines()
        rows = [line for line in lines[head:] if line.split(",")[0] in networks]
        (small / name).write_text("\n".join([*lines[:head], *rows]) + "\n")
        for file in {file for row in rows for file in row.split(",")[:2]}:
            shutil.copyfile(benchmark / file, small / file)
