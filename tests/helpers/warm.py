"""A process that has imported what is slow, and copies itself for the jobs of an interpreter.

    python -m tests.helpers.warm FOLDER                       the process that is copied
    FOLDER/python -m MODULE | -c TEXT [ARGUMENT ...]          as python, in a copy

Most of a short command's time is the import of torch. A test of what a command does, and not of
how it starts, need not pay for that: a copy has its own arguments, folder, environment, input and
output, starts processes in the same way, gets the signals of the one who asks (SIGINT and SIGTERM
as they are, its death as SIGKILL), and its exit code, or the signal that ended it, comes back.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

SOCKET, PYTHON = "socket", "python"  # in the folder


def ask(folder: str, arguments: list[str]) -> int:
    """Do the job of an interpreter with these arguments in a copy of the process that listens in
    the folder; its exit code. Other jobs are for a new process."""
    if arguments[0] not in ("-m", "-c"):
        os.execv(sys.executable, [sys.executable, *arguments])
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"{folder}/{SOCKET}")
        wanted = json.dumps([arguments, str(Path.cwd()), dict(os.environ)]).encode()
        socket.send_fds(line, [len(wanted).to_bytes(4, "big")], [0, 1, 2])
        line.sendall(wanted)
        copy = int(line.recv(16))

        def pass_on(number: int, _: object) -> None:
            with suppress(ProcessLookupError):
                os.kill(copy, number)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, pass_on)
        Path(folder, str(os.getpid())).write_text(f"{copy}\n")
        code = int(line.recv(16))
    if code < 0:
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def listen(folder: str) -> None:
    """Answer those who ask, also at the same time, until the input of this process ends; as a
    process that is nobody's child, because tests count their own."""
    if os.fork():
        os._exit(0)
    import pkgutil

    import fgp_vnn
    from fgp_vnn.cli.main import main
    from tests.helpers.command_line import MODEL, SAFE

    for module in pkgutil.walk_packages(fgp_vnn.__path__, "fgp_vnn."):
        if module.name != "fgp_vnn.__main__":
            import_module(module.name)
    for name in ("jinja2", "matplotlib.figure", "matplotlib.backends.backend_svg"):
        with suppress(ImportError):
            import_module(name)
    python = Path(folder, PYTHON)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{__file__}" "{folder}" "$@"\n')
    python.chmod(0o755)
    sys.executable = str(python)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies that have answered
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/{SOCKET}")
    listener.listen(64)
    main(["supports", str(MODEL), str(SAFE)])  # loads what is loaded late, and prints a line
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            try:
                _answer(line)
            finally:
                os._exit(0)  # what is unloaded at an end has threads that were not copied
        line.close()
    os._exit(0)


def _answer(line: socket.socket) -> None:
    """Do the job that is asked for, and send its exit code; it ends with the one who asks."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, ends, _, _ = socket.recv_fds(line, 4, 3)
    wanted = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    number = os.fork()
    if number == 0:
        line.close()
        _become(ends, *wanted)
    line.send(b"%-16d" % number)
    for end in ends:
        os.close(end)
    while (found := os.waitpid(number, os.WNOHANG)) == (0, 0):
        if select.select([line], [], [], 0.01)[0]:
            os.kill(number, signal.SIGKILL)
            return
    line.send(str(os.waitstatus_to_exitcode(found[1])).encode())


def _become(ends: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be an interpreter with this input and output and these words, in this folder."""
    import runpy

    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if "MPLBACKEND" in environment and "matplotlib" in sys.modules:  # read as it is imported
        sys.modules["matplotlib"].rcParams["backend"] = environment["MPLBACKEND"]
    kind, text, *arguments = words
    sys.argv = [kind if kind == "-c" else text, *arguments]
    code: object = 0
    try:
        if kind == "-c":
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_module(text, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    if __spec__ is None:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
    listen(sys.argv[1])
