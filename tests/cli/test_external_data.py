"""Every command on networks whose weights lie beside them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from fgp_vnn import verify
from fgp_vnn.bench.instances import read_benchmark
from fgp_vnn.bench.tools import unpacked_files
from fgp_vnn.network import load_network
from tests.helpers.bench_folders import PROPERTY
from tests.helpers.command_line import MODEL, SAFE, UNSAFE, run
from tests.helpers.network_models import WEIGHTS, Builder, beside


def test_certificate_is_bound_to_the_bytes_of_the_weights(
    tmp_path: Path, warm_command: list[str]
) -> None:
    path, proof = beside(MODEL, tmp_path), tmp_path / "proof.npz"
    verdict = verify(path, SAFE, certificate=proof)
    assert verdict.certificate == str(proof)
    assert run(warm_command, "check-certificate", proof, path, SAFE).returncode == 0
    weights = bytearray((tmp_path / WEIGHTS).read_bytes())
    weights[0] ^= 1  # the last bit of a weight
    (tmp_path / WEIGHTS).write_bytes(weights)
    checked = run(warm_command, "check-certificate", proof, path, SAFE)
    assert checked.returncode == 1
    assert "about another network" in checked.stdout


def test_every_command_reads_the_weights_beside_a_network(
    tmp_path: Path, warm_command: list[str]
) -> None:
    path, results = beside(MODEL, tmp_path), tmp_path / "results.txt"
    packed = tmp_path / "network.onnx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert run(warm_command, "supports", packed, SAFE).stdout == "supported\n"
    found = run(warm_command, "verify", path, UNSAFE, "--results", results)
    assert found.stdout.split()[0] == "sat", found.stderr
    assert run(warm_command, "check", results, packed, UNSAFE).stdout == "valid\n"
    assert verify(path, SAFE, float32_semantics=True).status == "unsat"


def test_bench_and_compare_run_networks_whose_weights_lie_beside_them(
    tmp_path: Path, warm_command: list[str]
) -> None:
    builder = Builder((1, 2))
    eye = builder.const(np.eye(2))
    model = builder.save(tmp_path / "m.onnx", builder.op("Gemm", "x", eye))
    folder = tmp_path / "set"
    folder.mkdir()
    path = beside(model, folder)
    (folder / "network.onnx.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    (folder / "p.vnnlib").write_text(PROPERTY)
    (folder / "safe.vnnlib").write_text(f"{PROPERTY}(assert (>= Y_1 2.0))\n")
    rows = [f"network.onnx,{name}.vnnlib,30\n" for name in ("p", "safe")]
    (folder / "instances.csv").write_text("".join(rows))
    done = run(warm_command, "bench", folder, "--out", tmp_path / "run", "--certificates")
    assert done.returncode == 0 and "1 of 1 unsat with an accepted certificate" in done.stdout
    assert ",sat," in (tmp_path / "run" / "results.csv").read_text()
    instance, _ = read_benchmark(folder).instances
    with unpacked_files(instance, tmp_path / "unpacked") as files:  # what another tool is given
        assert load_network(files.onnx).network.outputs == 2
