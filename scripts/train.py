"""Train small ReLU networks and write them as ONNX files.

python scripts/train.py --bundled OUT               # the networks of the bundled benchmark
python scripts/train.py --architecture 24x3 --method pgd OUT
python scripts/train.py --architecture conv_paper --method stable --data cifar.npz OUT
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

from training.architectures import KNOWN, input_shape
from training.ball import NORMS
from training.data import Dataset, load_dataset
from training.export import to_onnx
from training.fit import Recipe, accuracies, batches, train
from training.methods import METHODS

BUNDLED = (
    Recipe("16x2", "standard"),
    Recipe("16x2", "pgd"),
    Recipe("32x2", "mmr"),
    Recipe("32x2", "stable"),
    Recipe("24x3", "standard"),
    Recipe("24x3", "pgd"),
    Recipe("48x3", "mmr"),
    Recipe("48x3", "stable"),
    Recipe("20x6", "pgd", epochs=150),
    Recipe("conv_small", "standard"),
    Recipe("conv_small", "stable"),
    Recipe("conv_deep", "pgd"),
    Recipe("conv_6-12-32", "mmr", norm="l2", epsilon=0.4, epochs=80),
    Recipe("conv_6-12-32", "pgd", epochs=80),
    Recipe("conv_8-16-40", "stable", l1=1e-4, epochs=80),
)


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    torch.set_num_threads(1)  # sums in a fixed order, so that a seed always gives the same network
    torch.use_deterministic_algorithms(True)
    recipes: Sequence[Recipe] = BUNDLED
    if not args.bundled:
        names = [field.name for field in fields(Recipe)]
        recipes = [Recipe(**{name: getattr(args, name) for name in names})]
    try:
        data = load_dataset("digits" if args.bundled else args.data)
        args.out.mkdir(parents=True, exist_ok=True)
        train_all(recipes, data, args.out)
    except (OSError, ValueError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("train.py: interrupted", file=sys.stderr)
        return 130
    return 0


def train_all(recipes: Sequence[Recipe], data: Dataset, out: Path) -> None:
    """Train each recipe with a progress bar, write OUT/NAME.onnx and print its accuracies."""
    console = Console()
    with Progress(console=console) as progress:
        for recipe in recipes:
            task = progress.add_task(recipe.name, total=recipe.epochs * batches(data))
            model = train(recipe, data, on_batch=lambda task=task: progress.advance(task))  # type: ignore[misc]
            shape = input_shape(recipe.architecture, data.shape)
            path = out / f"{recipe.name}.onnx"
            path.write_bytes(to_onnx(model, shape, name=recipe.name).SerializeToString())
            plain, attacked = accuracies(model, recipe, data)
            progress.remove_task(task)
            console.print(
                f"{path.name}: test accuracy {plain:.3f}, "
                f"{attacked:.3f} under attack at {recipe.epsilon}"
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Train small ReLU networks, written as ONNX.")
    parser.add_argument("out", type=Path, help="folder for the ONNX files")
    parser.add_argument("--bundled", action="store_true", help="all of the bundled benchmark")
    parser.add_argument(
        "--architecture", default="24x3", help=f"one of {', '.join(KNOWN)} (default: 24x3)"
    )
    parser.add_argument("--method", choices=METHODS, default="standard")
    parser.add_argument("--data", default="digits", help="digits, or an npz file with x and y")
    parser.add_argument("--norm", choices=NORMS, default="linf", help="of the ball to train for")
    parser.add_argument("--epsilon", type=float, default=0.05, help="its radius (default: 0.05)")
    parser.add_argument(
        "--box", type=float, help="stable: l-infinity radius in which ReLUs are to keep their sign"
    )
    parser.add_argument("--weight", type=float, help="of the regulariser of mmr or stable")
    parser.add_argument("--l1", type=float, default=0.0, help="weight of the weights' l1 norm")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
