"""Certificates that were changed, made up, or damaged: none of them proves what is wrong."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import check, check_files, digest
from fgp_vnn.certificate.checker.network import read_network
from fgp_vnn.certificate.checker.proof import Certificate, ProofStep, read_certificate
from fgp_vnn.certificate.prove import typed
from fgp_vnn.certificate.write import write_certificate
from fgp_vnn.cli.main import main
from fgp_vnn.property import load_property
from tests.certificate.bundled import DEEP, SAT, changed, contents, deep
from tests.helpers.places import BENCHMARK


def equal(one: Certificate, other: Certificate) -> bool:
    heads = [(c.network, c.property, len(c.steps)) for c in (one, other)]
    if heads[0] != heads[1]:
        return False
    for a, b in zip(one.steps, other.steps, strict=True):
        if (a.kind, a.case, a.layer) != (b.kind, b.case, b.layer):
            return False
        if any(not np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays):
            return False
    return True


def test_a_changed_byte_is_refused_or_does_not_matter() -> None:
    data = deep()
    files, original = contents(*DEEP), read_certificate(deep())
    refused = 0
    for position in range(0, len(data), 23):
        flipped = bytearray(data)
        flipped[position] ^= 1 << (position % 8)
        try:
            # What has changed is a date in the archive, or its like.
            assert equal(read_certificate(bytes(flipped)), original)
            check_files(bytes(flipped), *files)
        except InputError:
            refused += 1
    assert refused > len(data) // 23 // 2


def test_a_certificate_is_about_its_files_only() -> None:
    network, prop = contents(*DEEP)
    with pytest.raises(InputError, match="another network"):
        check_files(deep(), network + b" ", prop)
    with pytest.raises(InputError, match="another property"):
        check_files(deep(), network, prop + b" ")


@pytest.mark.parametrize(("model", "prop"), SAT, ids=[Path(p[1]).stem for p in SAT])
def test_a_proof_of_one_instance_does_not_prove_another_that_is_sat(model: str, prop: str) -> None:
    network, text = contents(model, prop)
    stolen = replace(read_certificate(deep()), network=digest(network), property=digest(text))
    with pytest.raises(InputError):
        check_files(write_certificate(stolen), network, text)


@cache
def sat_instance(index: int) -> tuple[Any, Any]:
    model, prop = SAT[index]
    return read_network(contents(model, prop)[0]), load_property(BENCHMARK / prop)


def random_tree(generator: np.random.Generator, names: int, depth: int) -> list[int]:
    if depth == 0 or generator.random() < 0.3:
        return [-1]
    node = int(generator.integers(names))
    return [node, *(n for _ in range(2) for n in random_tree(generator, names, depth - 1))]


def random_step(generator: np.random.Generator, network: Any, prop: Any) -> ProofStep:
    """A step in good form, with arbitrary content."""
    case = int(generator.integers(len(prop.cases)))
    unsafe = prop.cases[case].unsafe
    rows = sum(len(part.limits) for part in unsafe)
    kind = str(generator.choice(["lemma", "close", "boxes"]))
    arrays: dict[str, Any] = {"disjuncts": np.arange(len(unsafe))}
    layer = int(generator.integers(len(network.widths)))
    if kind == "boxes":
        lower, upper = prop.cases[case].lower, prop.cases[case].upper
        side = int(generator.integers(network.inputs))
        arrays |= {"tree": [side, -1, -1], "cuts": [(lower[side] + upper[side]) / 2]}
        arrays["weights"] = generator.exponential(size=(2, rows))
        return typed(ProofStep(kind, case, {n: np.array(a) for n, a in arrays.items()}))
    below = sum(network.widths[:layer]) if kind == "lemma" else sum(network.widths)
    count = 4 if kind == "lemma" else len(unsafe)
    trees = [random_tree(generator, below, 3 if below else 0) for _ in range(count)]
    nodes = [node for tree in trees for node in tree]
    leaves = nodes.count(-1)
    arrays |= {
        "neurons": generator.integers(network.widths[layer], size=count),
        "sides": generator.choice([-1, 1], size=count),
        "tree": nodes,
        "columns": np.arange(below),
        "slopes": generator.integers(0, 256, size=(leaves, below)),
        "weights": generator.exponential(size=(leaves, rows)),
    }
    depth = sum(_assumptions(tree) for tree in trees)
    arrays["multipliers"] = generator.exponential(size=depth) * 10.0 ** generator.uniform(-3, 3)
    return typed(ProofStep(kind, case, {n: np.array(a) for n, a in arrays.items()}, layer))


def _assumptions(tree: list[int]) -> int:
    """The sum of the depths of a tree's leaves."""
    total, waiting = 0, [0]
    for node in tree:
        depth = waiting.pop()
        if node == -1:
            total += depth
        else:
            waiting += [depth + 1, depth + 1]
    return total


@given(st.integers(0, 10**6))
def test_no_certificate_whatever_proves_an_instance_that_is_sat(seed: int) -> None:
    generator = np.random.default_rng(seed)
    network, prop = sat_instance(int(generator.integers(len(SAT))))
    steps = tuple(random_step(generator, network, prop) for _ in range(generator.integers(1, 5)))
    with pytest.raises(InputError):
        check(Certificate("", "", steps), network, prop)


def _nan(array: Any) -> Any:
    array.flat[0] = np.nan
    return array


def _negative(array: Any) -> Any:
    array.flat[0] = -1
    return array


CHANGES: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("close", "weights", _nan),
    ("close", "weights", _negative),
    ("close", "weights", lambda a: a + np.inf),
    ("close", "weights", lambda a: 0 * a),
    ("close", "weights", lambda a: a[1:]),
    ("close", "weights", lambda a: a[:, 1:]),
    ("close", "disjuncts", lambda a: a[1:]),
    ("close", "disjuncts", lambda a: a + 100),
    ("close", "disjuncts", lambda a: -a - 1),
    ("close", "tree", lambda a: a[1:]),
    ("close", "tree", lambda a: np.append(a, -1)),
    ("close", "tree", lambda a: np.append(a, 10**6)),
    ("lemma", "neurons", lambda a: a + 10**6),
    ("lemma", "sides", lambda a: 0 * a),
    ("lemma", "sides", lambda a: a[1:]),
    ("lemma", "columns", lambda a: a - 10**6),
    ("lemma", "slopes", lambda a: a[1:]),
]


@pytest.mark.parametrize(("kind", "name", "change"), CHANGES, ids=range(len(CHANGES)))
def test_content_out_of_form_is_refused(kind: str, name: str, change: Callable[[Any], Any]) -> None:
    original = read_certificate(deep())
    index = [step.kind for step in original.steps].index(kind)
    with pytest.raises(InputError):
        check_files(write_certificate(changed(original, index, name, change)), *contents(*DEEP))


def test_multipliers_out_of_form_are_refused() -> None:
    original = read_certificate(deep())
    (index,) = [i for i, s in enumerate(original.steps) if len(s.arrays["multipliers"])]
    for change in (_nan, _negative, lambda a: a[1:], lambda a: a + np.inf):
        with pytest.raises(InputError, match="multiplier"):
            other = changed(original, index, "multipliers", change)
            check_files(write_certificate(other), *contents(*DEEP))


def test_a_step_left_out_is_missed() -> None:
    original = read_certificate(deep())
    for index, step in enumerate(original.steps):
        if step.kind == "close":
            left = tuple(s for i, s in enumerate(original.steps) if i != index)
            with pytest.raises(InputError, match="nothing is proved about disjunct"):
                check_files(write_certificate(replace(original, steps=left)), *contents(*DEEP))


def _archive(change: Callable[[zipfile.ZipFile], None], *, skip: str = "") -> bytes:
    """The certificate's archive with one entry left out, and something added."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(deep())) as old, zipfile.ZipFile(result, "w") as new:
        for entry in old.namelist():
            if entry != skip:
                new.writestr(entry, old.read(entry))
        change(new)
    return result.getvalue()


def _add(name: str, content: bytes, archive: zipfile.ZipFile) -> None:
    archive.writestr(name, content)


def _npy(array: Any) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, np.asarray(array))
    return data.getvalue()


def _pickled() -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, np.array([{}], dtype=object), allow_pickle=True)
    return data.getvalue()


BROKEN: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "no archive": lambda: b"certificate",
    "cut short": lambda: deep()[:-30],
    "a pickle": lambda: pickle.dumps([1]),
    "no header": lambda: _archive(lambda a: None, skip="header.npy"),
    "an array missing": lambda: _archive(lambda a: None, skip="0.tree.npy"),
    "an array too many": lambda: _archive(lambda a: a.writestr("x.npy", _npy([1]))),
    "no array": lambda: _archive(lambda a: a.writestr("readme.txt", b"")),
    "another type": lambda: _archive(
        lambda a: a.writestr("0.tree.npy", _npy(np.array([-1], dtype=">i4"))), skip="0.tree.npy"
    ),
    "another shape": lambda: _archive(
        lambda a: a.writestr("0.tree.npy", _npy(np.array([[-1]], dtype=np.int32))),
        skip="0.tree.npy",
    ),
    "objects": lambda: _archive(lambda a: a.writestr("0.tree.npy", _pickled()), skip="0.tree.npy"),
    "bytes behind": lambda: _archive(
        lambda a: a.writestr("header.npy", _npy(np.zeros(2, np.uint8)) + b"x"), skip="header.npy"
    ),
    "another format": lambda: _archive(
        lambda a: a.writestr("header.npy", _npy(np.frombuffer(b'{"format": 1}', np.uint8))),
        skip="header.npy",
    ),
    "a header of lists": lambda: _archive(
        lambda a: a.writestr("header.npy", _npy(np.frombuffer(b"[1]", np.uint8))),
        skip="header.npy",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_out_of_form_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.npz"
    path.write_bytes(BROKEN[name]())
    files = [str(BENCHMARK / part) for part in DEEP]
    assert main(["check-certificate", str(path), *files]) == 1
    out = capsys.readouterr().out
    assert out.startswith("certificate refused: ") and out.count("\n") == 1


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused() -> None:
    data = _archive(lambda a: a.writestr("0.tree.npy", _npy(np.array([-1], dtype=np.int32))))
    with pytest.raises(InputError, match="twice"):
        check_files(data, *contents(*DEEP))


def test_versions_and_results_that_are_not_known_are_refused() -> None:
    with np.load(io.BytesIO(deep())) as arrays:
        header = arrays["header"].tobytes()
    for old, new in ((b'"version": 1', b'"version": 2'), (b'"unsat"', b'"sat"')):
        content = _npy(np.frombuffer(header.replace(old, new), np.uint8))
        data = _archive(partial(_add, "header.npy", content), skip="header.npy")
        with pytest.raises(InputError, match=r"version 2|claims 'sat'"):
            read_certificate(data)
