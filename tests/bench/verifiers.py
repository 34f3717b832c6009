"""Stand-ins for `verify`: what they do is written in the name of the network's file."""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import psutil

import fgp_vnn
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.verdict import Counterexample, Verdict


def by_name(onnx: str, vnnlib: str, *, timeout: float, **settings: Any) -> Verdict:
    """For a file such as 3-sat.onnx, 4-hang.onnx.gz: do what the word says."""
    word = Path(onnx).name.partition(".")[0].rpartition("-")[2]
    if word == "proved":
        return fgp_vnn.verify(onnx, vnnlib, timeout=timeout, certificate=settings["certificate"])
    return _DEEDS[word](timeout)


def with_certificate(onnx: str, vnnlib: str, *, certificate: str, **settings: Any) -> Verdict:
    """unsat, with a file that is no proof: `forged`, or `deadly` for who checks it; or `bare`."""
    word = Path(onnx).name.partition(".")[0].rpartition("-")[2]
    if word == "sat":
        return _sat(0.0)
    if word == "bare":
        return Verdict("unsat", "bounds", reason="no certificate: too hard to prove")
    Path(certificate).write_bytes(b"no proof at all")
    if word == "deadly":
        from fgp_vnn.certificate.checker import check

        def die(*files: bytes) -> NoReturn:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        check.check_files = die  # type: ignore[assignment]
    return Verdict("unsat", "bounds", certificate=certificate)


def settings_given(onnx: str, vnnlib: str, *, timeout: float, **settings: Any) -> Verdict:
    """The reason is what it was called with."""
    return Verdict("unknown", reason=json.dumps(settings))


def _unsat(timeout: float) -> Verdict:
    return Verdict("unsat", "bounds", seconds={"bounds": 0.5}, statistics={"bundles": 1})


def _sat(timeout: float) -> Verdict:
    return Verdict("sat", "attack", _point(1.0, 0.0))


def _liar(timeout: float) -> Verdict:
    return Verdict("sat", "attack", _point(0.0, 1.0))


def _point(*values: float) -> Counterexample:
    x = np.array(values, dtype=np.float32)
    return Counterexample(x.astype(np.float64), x)


def _unknown(timeout: float) -> Verdict:
    return Verdict("unknown", reason="too hard")


def _nap(timeout: float) -> Verdict:
    time.sleep(0.01)
    return Verdict("unsat", "bounds")


def _hang(timeout: float) -> Verdict:
    time.sleep(3600)
    return Verdict("unknown")


def _late(timeout: float) -> Verdict:
    time.sleep(timeout + 0.05)
    return Verdict("unsat", "bounds")


def _die(timeout: float) -> Verdict:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _exit(timeout: float) -> Verdict:
    print("the library gave up", file=sys.stderr)
    os._exit(7)


def _greedy(timeout: float) -> Verdict:
    return Verdict("unsat", str(len(bytearray(3 << 30))))


def _sharing(timeout: float) -> Verdict:
    shared = mmap.mmap(-1, 2 << 30)
    for start in range(0, len(shared), 1 << 20):
        shared[start : start + (1 << 20)] = bytes(1 << 20)
    time.sleep(3600)
    raise AssertionError


def _raise(timeout: float) -> Verdict:
    raise RuntimeError("two\nlines")


def _unsupported(timeout: float) -> Verdict:
    raise UnsupportedError("Sigmoid")


def _malformed(timeout: float) -> Verdict:
    raise InputError("not a network")


def _chatty(timeout: float) -> Verdict:
    print("libraries print to standard output", flush=True)
    os.system("echo so do their children")
    return _unsat(timeout)


def _orphan(timeout: float) -> Verdict:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)
    raise AssertionError


def _ports(timeout: float) -> Verdict:
    """unsat if nothing above this process, nor its siblings, listens beyond this machine, and the
    priority of this process is that of the one that started the actor."""
    own, above = (process.nice() for process in (psutil.Process(), _relatives()[0]))
    if own != above:
        return Verdict("unknown", reason=f"its niceness is {own}, not {above}")
    addresses = {address for process in _relatives() for address in _listening(process)}
    assert addresses, "nobody listens: the test sees nothing"
    loopback = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    return Verdict("unsat" if addresses <= loopback else "unknown", reason=f"{addresses}")


def _relatives() -> list[psutil.Process]:
    """The actor, the process that started it, and all that this one started."""
    above = psutil.Process(os.getppid()).parents()[:2]
    return [*above, *(child for process in above for child in process.children())]


def _listening(process: psutil.Process) -> set[str]:
    with suppress(psutil.Error):
        connections = process.net_connections(kind="tcp")
        return {entry.laddr.ip for entry in connections if entry.status == psutil.CONN_LISTEN}
    return set()


_DEEDS = {
    "unsat": _unsat,
    "sat": _sat,
    "liar": _liar,
    "unknown": _unknown,
    "nap": _nap,
    "hang": _hang,
    "late": _late,
    "die": _die,
    "exit": _exit,
    "greedy": _greedy,
    "sharing": _sharing,
    "raise": _raise,
    "unsupported": _unsupported,
    "malformed": _malformed,
    "chatty": _chatty,
    "orphan": _orphan,
    "ports": _ports,
}

not_callable = "a string"
