"""Measure first bounds and a verdict on a residual network as large as those for TinyImageNet.

    python scripts/benchmarks/large_network.py [--epsilon 0.0005] [--timeout 100] [--memory 8]

The network has 175,744 ReLUs on images of 3 x 56 x 56 and 200 classes. The training script trains
it on random images for one epoch. The property says that the class of one of these images does not
change in a box around it. Prints the verdict, the seconds of each stage and the peak memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

import fgp_vnn
from fgp_vnn.property.model import Case, Conjunction, Property
from train import train_all
from training.data import load_dataset
from training.fit import Recipe

ARCHITECTURE = "resnet_16-32-32-64-128"
SHAPE, CLASSES = (3, 56, 56), 200


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A verdict on a large residual network.")
    parser.add_argument("--architecture", default=ARCHITECTURE)
    parser.add_argument("--shape", type=int, nargs=3, default=SHAPE, metavar="SIZE")
    parser.add_argument("--epsilon", type=float, default=0.0005, help="l-infinity radius")
    parser.add_argument("--timeout", type=float, default=100.0)
    parser.add_argument("--memory", type=float, default=8.0, help="gigabytes")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path, image = make(Path(folder), args.architecture, tuple(args.shape))
        told = measure(path, image, args)
    print(told)
    return 0


def make(folder: Path, architecture: str, shape: tuple[int, ...]) -> tuple[Path, NDArray[np.uint8]]:
    """Train a network on random images, one per class; return its file and one of the images."""
    images = np.random.default_rng(0).integers(0, 256, (CLASSES, *shape), dtype=np.uint8)
    np.savez(folder / "random.npz", x=images, y=np.arange(CLASSES))
    recipe = Recipe(architecture, "standard", epochs=1)
    train_all([recipe], load_dataset(str(folder / "random.npz")), folder)
    return folder / f"{recipe.name}.onnx", images[-1]


def robust(path: Path, image: NDArray[np.uint8], epsilon: float) -> Property:
    """Robustness property: any other class is unsafe where pixels move by epsilon within [0, 1]."""
    x = image.astype(np.float32) / np.float32(255)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"x": x[None]})[0][0]
    others = [c for c in range(len(outputs)) if c != outputs.argmax()]
    rows = np.eye(len(outputs))[outputs.argmax()] - np.eye(len(outputs))[others]
    unsafe = tuple(Conjunction(row[None], np.zeros(1), np.zeros(1, dtype=bool)) for row in rows)
    flat = x.astype(np.float64).ravel()
    lower, upper = (np.clip(flat + side * epsilon, 0, 1) for side in (-1, 1))
    return Property((Case(lower, upper, unsafe),), len(flat), len(outputs))


def measure(path: Path, image: NDArray[np.uint8], args: argparse.Namespace) -> str:
    """The verdict for an image, its seconds and the peak memory of the process, as text."""
    settings = {"timeout": args.timeout, "memory": args.memory, "device": args.device}
    verdict = fgp_vnn.verify(path, robust(path, image, args.epsilon), **settings)
    seconds = ", ".join(f"{name} {spent:.1f}" for name, spent in verdict.seconds.items())
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return f"{verdict.status} at {args.epsilon:g}: {seconds} seconds, {most:.1f} GB"


if __name__ == "__main__":
    sys.exit(main())
