"""Networks whose weights lie in files beside them."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.model_file import external_tensors, read_model
from fgp_vnn.base.program import open_program
from fgp_vnn.network import load_network
from tests.helpers.command_line import MODEL
from tests.helpers.network_models import WEIGHTS, Builder, beside


def edited(folder: Path, edit: Callable[[onnx.TensorProto], None]) -> Path:
    """A network with its weights beside it, of which one tensor was changed."""
    path = beside(MODEL, folder)
    model = onnx.load(str(path), load_external_data=False)
    edit(external_tensors(model)[0])
    path.write_bytes(model.SerializeToString())
    return path


def entry(key: str, value: str) -> Callable[[onnx.TensorProto], None]:
    """What sets an entry of a tensor that says where it is stored."""

    def edit(tensor: onnx.TensorProto) -> None:
        kept = {e.key: e.value for e in tensor.external_data if e.key != key}
        del tensor.external_data[:]
        for name, text in (*kept.items(), (key, value)):
            tensor.external_data.add(key=name, value=text)

    return edit


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_network(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("weights", [WEIGHTS, "below/weights.bin"])
def test_weights_beside_a_network_are_those_inside_of_it(tmp_path: Path, weights: str) -> None:
    (tmp_path / "below").mkdir()
    x = np.linspace(0, 1, 64, dtype=np.float32)
    expected = load_network(MODEL).runtime.run(x)
    np.testing.assert_array_equal(
        load_network(beside(MODEL, tmp_path, weights=weights)).runtime.run(x), expected
    )


@pytest.mark.parametrize("packed", [("network.onnx",), (WEIGHTS,), ("network.onnx", WEIGHTS)])
def test_both_files_may_be_gzipped(tmp_path: Path, packed: tuple[str, ...]) -> None:
    path = beside(MODEL, tmp_path)
    whole = read_model(path)
    for name in packed:
        content = (tmp_path / name).read_bytes()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
        (tmp_path / name).unlink()
    assert read_model(path if path.exists() else tmp_path / "network.onnx.gz") == whole


def test_weights_that_look_like_gzip_are_taken_as_they_are(tmp_path: Path) -> None:
    builder = Builder((1, 2))
    raw = b"\x1f\x8b\x08\x00" * 4
    weights = np.frombuffer(raw, dtype=np.float32).reshape(2, 2)
    model = builder.save(tmp_path / "m.onnx", builder.op("MatMul", "x", builder.const(weights)))
    path = beside(model, tmp_path)
    assert (tmp_path / WEIGHTS).read_bytes().startswith(raw)
    whole = onnx.ModelProto.FromString(read_model(path))
    assert whole.graph.initializer[0].raw_data == raw


def test_constants_in_nodes_may_lie_in_another_file_too(tmp_path: Path) -> None:
    value = numpy_helper.from_array(np.asarray([[1, 2], [3, 4]], dtype="float32"), "w")
    (tmp_path / WEIGHTS).write_bytes(value.raw_data)
    value.raw_data, value.data_location = b"", value.EXTERNAL
    value.external_data.add(key="location", value=WEIGHTS)
    builder = Builder((1, 2))
    path = builder.save(
        tmp_path / "m.onnx", builder.op("MatMul", "x", builder.op("Constant", value=value))
    )
    y = load_network(path).runtime.run(np.ones(2, dtype=np.float32))
    assert y.tolist() == [4, 6]


FAULTS: list[tuple[Callable[[onnx.TensorProto], None], str]] = [
    (entry("location", "/etc/hostname"), "does not name a file in the network's folder"),
    (entry("location", "C:\\weights.bin"), "does not name a file in the network's folder"),
    (entry("location", "../weights.bin"), "does not name a file in the network's folder"),
    (entry("location", "below\\..\\..\\weights.bin"), "does not name a file"),
    (entry("location", ""), "does not name a file"),
    (entry("location", "a\0b"), "cannot be read"),
    (entry("location", "absent.bin"), "'absent.bin' is not in the network's folder"),
    (entry("location", "."), "does not name a file"),
    (entry("location", "folder"), "is not a regular file"),
    (entry("location", "pipe"), "is not a regular file"),
    (entry("location", "link"), "is a link out of the network's folder"),
    (entry("location", "linked/secret"), "is a link out of the network's folder"),
    (entry("location", "loop"), "cannot be read"),
    (entry("offset", "-4"), "offset is '-4'"),
    (entry("offset", "1e3"), "offset is '1e3'"),
    (entry("offset", "9" * 30), "offset is '999"),
    (entry("offset", "999999999"), "ends before byte"),
    (entry("length", "4"), "they have 4 bytes, but the tensor takes"),
    (lambda tensor: tensor.dims.append(-1), "negative dimension"),
    (lambda tensor: tensor.dims.append(1 << 40), "but the tensor takes"),
    (lambda tensor: setattr(tensor, "data_type", tensor.STRING), "type STRING"),
]


@pytest.mark.parametrize(("edit", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_what_is_not_in_the_folder_or_does_not_fit_is_refused_in_one_line(
    tmp_path: Path, edit: Callable[[onnx.TensorProto], None], words: str
) -> None:
    folder = tmp_path / "networks"
    (folder / "folder").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(bytes(1 << 16))
    (folder / "link").symlink_to(outside / "secret")
    (folder / "linked").symlink_to(outside)
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    path = edited(folder, edit)
    shutil.copy(folder / WEIGHTS, tmp_path)
    said = refusal(path)
    assert words in said
    assert str(path) in said


def test_weights_that_are_too_large_are_refused_before_they_are_read(tmp_path: Path) -> None:
    def large(tensor: onnx.TensorProto) -> None:
        tensor.dims[:] = [1 << 20, 1 << 10]
        entry("length", str(1 << 32))(tensor)

    assert "larger than" in refusal(edited(tmp_path, large))


def test_onnxruntime_is_never_given_a_model_that_points_to_a_file(tmp_path: Path) -> None:
    inner = onnx.load(str(beside(MODEL, tmp_path)), load_external_data=False)
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner.graph, else_branch=inner.graph)
    hidden = onnx.ModelProto(graph=helper.make_graph([branch], "g", [], []))
    for model in (inner, hidden):
        assert external_tensors(model)
        with pytest.raises(InputError, match="not in the model"):
            open_program(model.SerializeToString())
