"""Run a command for a limited time, and no longer than the process that started it lives.

This is a script: python -I leash.py SECONDS COMMAND... When its standard input ends, the command
and all processes that it started are killed. It prints one line of JSON: the exit code (null if
the time was up) and the seconds it took.
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
    """Run the command for at most `limit` seconds and print how it ended."""
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
    kill_group(process.pid)
    process.wait()
    print(json.dumps({"code": code, "seconds": seconds}), flush=True)


def _hold(group: int) -> None:
    sys.stdin.read()
    kill_group(group)
    os._exit(1)


def kill_group(group: int) -> None:
    """Kill all processes of a group, also those that have outlived its leader."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
