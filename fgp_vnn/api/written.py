"""A model and a property from Python, written to two files for certificates and other tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import torch

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_writable, read_bytes, write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.network.onnx.load import parse
from fgp_vnn.network.onnx.module import export_module, weights_note
from fgp_vnn.property import Property
from fgp_vnn.property.write import format_property


def onnx_of(model: Any) -> onnx.ModelProto:
    """The ONNX model of a path, of bytes, of a model in memory, of a torch module, or of a network
    that `load_model` loaded from one of these."""
    if isinstance(model, LoadedNetwork):
        model = model.source
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, torch.nn.Module):
        return parse(export_module(model))
    if isinstance(model, (str, Path)):
        return parse(read_model(Path(model)))
    if isinstance(model, bytes):
        return parse(model)
    raise InputError(
        "this needs the network's file, ONNX in memory, a torch module or what load_model makes of "
        f"one of them, not {type(model).__name__}"
    )


def note_of(model: Any) -> str:
    """How the written network differs from the model; empty if it does not."""
    if isinstance(model, LoadedNetwork):
        return model.note
    return weights_note(model) if isinstance(model, torch.nn.Module) else ""


@contextmanager
def as_files(
    model: Any, prop: str | Path | Property, stem: Path
) -> Iterator[tuple[Path, Path, list[Path]]]:
    """Yield the paths of the network and the property, and the list of new files. A model in memory
    is written to `stem`.onnx, a `Property` to `stem`.vnnlib; new files are deleted on an error."""
    wanted: list[tuple[Path, bytes, str]] = []
    network, text = stem.with_suffix(".onnx"), stem.with_suffix(".vnnlib")
    if isinstance(model, LoadedNetwork) and isinstance(model.source, Path):
        model = model.source
    if isinstance(model, (str, Path)):
        network = Path(model)
    else:
        data = onnx_of(model).SerializeToString(deterministic=True)
        wanted.append((network, data, "network"))
    if isinstance(prop, Property):
        wanted.append((text, format_property(prop).encode("ascii"), "property"))
    else:
        text = Path(prop)
    made = []
    try:
        for path, data, what in wanted:
            if path == stem:
                raise InputError(f"{path} is also the file for the {what}: choose another name")
            if _write_new(path, data, what):
                made.append(path)
        yield network, text, made
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _write_new(path: Path, data: bytes, what: str) -> bool:
    """Write a file and return True; return False if it already exists with this content. Raises
    InputError if it has other content."""
    check_writable(path, what)
    if not path.exists():
        write_bytes(path, data, what)
        return True
    if read_bytes(path, what) != data:
        raise InputError(f"{path} exists already with another {what}: choose another name")
    return False
