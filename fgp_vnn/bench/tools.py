"""Run any verifier that has the scripts of VNN-COMP, as the competition does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.network_list import named_networks
from fgp_vnn.base.verdict import STATUSES
from fgp_vnn.bench import leash
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.printed import last_line
from fgp_vnn.bench.record import Answer

PREPARE_SECONDS = 600.0
EXTRA_SECONDS = 60.0  # past its time limit, after which a tool is killed

DECLINED = "declined"  # beginning of the reason of a tool that does not take an instance
_PLACES = ("", "vnncomp", "vnncomp_scripts", "../vnncomp_scripts")
_SCRIPTS = ("prepare_instance.sh", "run_instance.sh")


@dataclass(frozen=True)
class Tool:
    """A tool's name and the folder of its scripts."""

    name: str
    scripts: Path


@dataclass(frozen=True)
class Files:
    """The unpacked files of an instance, as the competition passes them to a tool."""

    onnx: str
    vnnlib: Path


def find_tool(name: str, folder: Path) -> Tool:
    """Return the tool whose scripts are in a folder, or in one of the usual places near it."""
    for place in _PLACES if folder.is_dir() else ():
        scripts = (folder / place).resolve()
        if all((scripts / script).is_file() for script in _SCRIPTS):
            return Tool(name, scripts)
    raise InputError(f"{folder}: no {' and '.join(_SCRIPTS)} here or in {', '.join(_PLACES[1:])}")


def run_tool(tool: Tool, instance: Instance, files: Files, results: Path, log: Path) -> Answer:
    """Prepare and run one instance; `results` is the file into which the tool writes its answer."""
    arguments = ["v1", instance.category, files.onnx, str(files.vnnlib)]
    results.unlink(missing_ok=True)
    with log.open("ab") as output:
        code, prepared = _call(tool, _SCRIPTS[0], arguments, PREPARE_SECONDS, output)
        if code != 0:
            how = "took too long" if code is None else f"ended with exit code {code}"
            reason = f"{DECLINED}: {_SCRIPTS[0]} {how}{last_line(log)}"
            return Answer("unknown", 0.0, reason=reason, prepare_time=prepared)
        begin, arguments = log.stat().st_size, [*arguments, str(results), _number(instance.timeout)]
        limit = instance.timeout + EXTRA_SECONDS
        code, seconds = _call(tool, _SCRIPTS[1], arguments, limit, output)
    if code is None:
        reason = f"killed {EXTRA_SECONDS:g} s after its limit"
        return Answer("timeout", seconds, reason=reason, prepare_time=prepared)
    if code != 0:
        reason = f"{_SCRIPTS[1]} ended with exit code {code}{last_line(log, begin)}"
        return Answer("error", seconds, reason=reason, prepare_time=prepared)
    return replace(_read_answer(results, seconds), prepare_time=prepared)


@contextmanager
def unpacked_files(instance: Instance, folder: Path) -> Iterator[Files]:
    """Yield the files of an instance; .gz files are unpacked in `folder` for that time."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        vnnlib = _unpack(Path(instance.property_file), folder, "property")
        networks = [_unpack(Path(name), folder, "network") for name in instance.network_files]
        onnx = str(networks[0]) if len(networks) == 1 else _named(instance.onnx, networks)
        yield Files(onnx, vnnlib)
    finally:
        shutil.rmtree(folder)


def _unpack(path: Path, folder: Path, what: str) -> Path:
    """Return the path of a file, unpacked if it is .gz; a network includes external weights."""
    if path.suffix != ".gz":
        return path.absolute()
    target = folder.absolute() / path.stem
    target.write_bytes(read_model(path) if what == "network" else read_bytes(path, what))
    return target


def _named(column: str, networks: list[Path]) -> str:
    """Return the network column for several networks, with the paths of the unpacked files."""
    names = named_networks(column) or {}
    return str([(name, str(path)) for name, path in zip(names, networks, strict=True)])


def _call(
    tool: Tool, script: str, arguments: list[str], limit: float, output: IO[bytes]
) -> tuple[int | None, float]:
    """Run a script; return its exit code (None if it was killed) and its seconds."""
    command = ["bash", str(tool.scripts / script), *arguments]
    with subprocess.Popen(
        [sys.executable, "-I", leash.__file__, str(limit), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        cwd=tool.scripts,
        start_new_session=True,  # Ctrl-C reaches this process only, and its end closes the pipe
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin:
            said = process.stdout.read()
    if process.returncode != 0:
        raise InputError(f"{tool.scripts / script}: cannot be run, see {output.name}")
    answer = json.loads(said)
    return answer["code"], answer["seconds"]


def _read_answer(results: Path, seconds: float) -> Answer:
    try:
        text = results.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Answer("error", seconds, reason="no results file was written")
    word = text.strip().partition("\n")[0].strip().lower()
    if word not in STATUSES:
        return Answer("error", seconds, reason=f"the results file begins with {word[:40]!r}")
    return Answer(word, seconds, counterexample=text if word == "sat" else "")


def _number(seconds: float) -> str:
    return str(int(seconds)) if seconds.is_integer() else str(seconds)
