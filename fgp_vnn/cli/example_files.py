"""Example files for the commands: a classifier, a controller, properties, a benchmark folder."""

from __future__ import annotations

from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes, writing

CLASSIFIER = "dense_24x3_pgd"
SAFE, BROKEN = f"{CLASSIFIER}_untargeted_0.02", f"{CLASSIFIER}_untargeted_0.15"
NETWORKS = (CLASSIFIER, "conv_small_standard")  # of the example benchmark folder
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
    """Write the files into a folder, which is created if needed, and return the names of its
    entries. Raises InputError if a file of the same name has other content."""
    import onnx.parser

    wanted = {
        "model.onnx": (benchmark / "onnx" / f"{CLASSIFIER}.onnx").read_bytes(),
        "property.vnnlib": (benchmark / "vnnlib" / f"{SAFE}.vnnlib").read_bytes(),
        "broken.vnnlib": (benchmark / "vnnlib" / f"{BROKEN}.vnnlib").read_bytes(),
        "points.npz": (benchmark / "points.npz").read_bytes(),
        "controller.onnx": onnx.parser.parse_model(CONTROLLER).SerializeToString(),
        "pushes_back.vnnlib": PUSHES_BACK.encode(),
        **{f"benchmark/{name}": content for name, content in _small(benchmark).items()},
    }
    with writing():
        for name, content in wanted.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.read_bytes() != content:
                raise InputError(f"{path} exists already with other content: name a new folder")
            if not path.exists():
                write_bytes(path, content, "file")
    return sorted({name.partition("/")[0] for name in wanted})


def _small(benchmark: Path) -> dict[str, bytes]:
    """A benchmark folder with the instances of `NETWORKS` and their known answers: the content of
    each file by name."""
    networks, made = {f"onnx/{name}.onnx" for name in NETWORKS}, dict[str, bytes]()
    for name, head in (("instances.csv", 0), ("ground_truth.csv", 1)):
        lines = (benchmark / name).read_text().splitlines()
        rows = [line for line in lines[head:] if line.split(",")[0] in networks]
        made[name] = "\n".join([*lines[:head], *rows, ""]).encode()
        for file in {file for row in rows for file in row.split(",")[:2]}:
            made[file] = (benchmark / file).read_bytes()
    return made
