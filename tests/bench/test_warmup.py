from __future__ import annotations

from pathlib import Path
from typing import Any

import fgp_vnn
from fgp_vnn.bench.warmup import warm_up


def test_the_smallest_instance_is_one_that_the_verifier_proves() -> None:
    verdicts = []

    def verify(onnx: str, vnnlib: str, **settings: Any) -> None:
        verdicts.append(fgp_vnn.verify(onnx, vnnlib, **settings).status)
        assert Path(onnx).exists()

    warm_up(verify, {"device": "cpu"})
    assert verdicts == ["unsat"]


def test_a_verifier_that_fails_is_left_to_fail_later() -> None:
    called = []

    def verify(onnx: str, vnnlib: str, **settings: Any) -> None:
        called.append(settings)
        raise RuntimeError

    warm_up(verify, {"device": "cpu"})
    assert called == [{"device": "cpu", "timeout": 10.0}]
