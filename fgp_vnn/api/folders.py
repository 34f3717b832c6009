"""Folders of instances in the competition's layout: networks, properties and instances.csv."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fgp_vnn.api.arrays import read_number, read_targets
from fgp_vnn.api.models import open_model
from fgp_vnn.api.monotone import monotonicity
from fgp_vnn.api.points import Points
from fgp_vnn.api.properties import check_classifier, robustness
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes, write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.words import Version
from fgp_vnn.property import Property
from fgp_vnn.property.write import write_property


@dataclass(frozen=True)
class Folder:
    """A folder to which instances are written."""

    path: Path
    version: Version = "1.0"
    timeout: float = 60.0  # seconds, written to instances.csv

    def write(self, name: str, prop: Property, title: str = "") -> str:
        """Write a property and return the path of its file, relative to the folder."""
        file = f"vnnlib/{name}.vnnlib"
        (self.path / "vnnlib").mkdir(parents=True, exist_ok=True)
        write_property(self.path / file, prop, version=self.version, title=title)
        return file

    def list(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write instances.csv from pairs (network, property) of relative paths."""
        lines = "".join(f"{network},{prop},{self.timeout:g}\n" for network, prop in rows)
        write_bytes(self.path / "instances.csv", lines.encode(), "instances.csv")


class Written(NamedTuple):
    """What was written to a folder, and which points were skipped."""

    instances: int
    wrong: int = 0  # points that the network misclassifies
    on_target: int = 0  # points whose class is the only target


def write_folder(
    folder: Folder,
    model: Path,
    read: Callable[[tuple[int, ...]], Points],
    epsilons: Sequence[Any],
    near: Mapping[str, Any],
    *,
    keep_wrong: bool = False,
) -> Written:
    """Write robustness properties of a network, one for each point and each epsilon.

    `read` returns the points, given the shape of the network's input; `near` holds the arguments
    `clip` and `target` of `robustness`. Points that the network misclassifies are skipped unless
    `keep_wrong`, and points whose class is the only target always.
    """
    loaded = open_model(model)
    check_classifier(loaded.network.outputs)
    points = read(loaded.input_shape)
    points.check_classes(loaded.network.outputs)
    targets = read_targets(near.get("target"), loaded.network.outputs)
    radii = [read_number(epsilon, "epsilon") for epsilon in epsilons]
    if not radii:
        raise InputError("no epsilon is given")
    name = model.name.removesuffix(".gz").removesuffix(".onnx")
    network = _copied(folder, model)
    rows, wrong, on_target = [], 0, 0
    for number, x in enumerate(points.x):
        own = int(loaded.runtime.run(x.astype(np.float32)).argmax())
        label = own if points.y is None else int(points.y[number])
        if label != own and not keep_wrong:
            wrong += 1
            continue
        if targets == (label,):
            on_target += 1
            continue
        for epsilon, radius in zip(epsilons, radii, strict=True):
            try:
                prop = robustness(loaded, x, epsilon=radius, y=label, **near)
            except InputError as error:
                raise InputError(f"point {number}: {error}") from error
            title = f"point {number}, class {label}, within {epsilon}"
            file = f"{name}_{number}_{str(epsilon).replace('/', '_')}"
            rows.append((network, folder.write(file, prop, title)))
    folder.list(rows)
    return Written(len(rows), wrong, on_target)


def write_monotone(
    folder: Folder, model: Path, inputs: Any, entry: int, how: Mapping[str, Any]
) -> None:
    """Write the instance that asks whether a network is monotone in one input: the paired network
    and its property. `how` holds the other arguments of `monotonicity`."""
    question = monotonicity(model, inputs, entry, **how)
    word = "decreasing" if how.get("decreasing") else "increasing"
    name = f"{model.name.removesuffix('.gz').removesuffix('.onnx')}_{word}_{entry}"
    network = f"onnx/{name}.onnx"
    target = folder.path / network
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, question.model.SerializeToString(deterministic=True), "network")
    title = f"{word} in input {entry} up to {how['tolerance']}; its other value is the last input"
    folder.list([(network, folder.write(name, question.property, title))])


def _copied(folder: Folder, model: Path) -> str:
    """Copy the network to the folder, with its weights in the same file; return its relative
    path."""
    data, packed = read_model(model), model.name.endswith(".gz")
    beside = data != read_bytes(model, "network")  # weights are in separate files
    network = f"onnx/{model.name.removesuffix('.gz') if beside else model.name}"
    target = folder.path / network
    if not (target.exists() and model.exists() and target.samefile(model)):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, model.read_bytes() if packed and not beside else data, "network")
    return network
