"""Runs a command for so many seconds at most, and not longer than whoever asked for it lives.

Started as a script of its own: python -I leash.py SECONDS COMMAND... Its standard input is the
leash: when that ends, the command and all that it started are killed. It answers with one line of
JSON, the exit code (null if the time was up) and the seconds it took.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time


def main(limit: float, command: list[str]) -> None:
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
    )
    threading.Thread(target=_hold, args=(process.pid,), daemon=True).start()
    try:
        code: int | None = process.wait(limit)
    except subprocess.TimeoutExpired:
        code = None
    seconds = time.perf_counter() - start
    _kill(process.pid)
    process.wait()
    print(json.dumps({"code": code, "seconds": seconds}), flush=True)


def _hold(group: int) -> None:
    sys.stdin.read()
    _kill(group)
    os._exit(1)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
