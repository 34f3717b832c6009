"""Facts that a result depends on besides its instance: versions, the machine, the command."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import fgp_vnn
from fgp_vnn import __version__
from fgp_vnn.budget.host import total_memory


def versions() -> dict[str, str]:
    """Return the version of each package that a result may depend on."""
    found = {"fgp-vnn": __version__, "python": platform.python_version()}
    for package in ("torch", "onnxruntime", "onnx", "vnnlib", "numpy"):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def machine() -> dict[str, Any]:
    """Return the processor, its cores, threads and memory, and the operating system."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(errors="replace") if cpuinfo.exists() else ""
    if named := re.search(r"^model name.*?:(.*)$", text, re.MULTILINE):
        processor = named[1].strip()
    return {
        "processor": processor,
        "cores": psutil.cpu_count(),
        "memory": f"{total_memory() / 2**30:.0f} GiB",
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "system": f"{platform.system()} {platform.release()}",
    }


def provenance(command: Sequence[str], timing: str) -> dict[str, Any]:
    """Return the facts needed to judge and to repeat a run that begins now.

    `timing` is one of the kinds of `timing.Timing`.
    """
    return {
        "command": list(command),
        "folder": str(Path.cwd()),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "timing": timing,
        "host": platform.node(),
        **machine(),
        "versions": versions(),
        "revision": revision(Path(fgp_vnn.__file__)),
    }


def revision(file: Path) -> str:
    """Return the git revision of the repository of a file, with a plus sign if it has changes.

    Empty if git does not know the file.
    """

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(file.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    try:
        if git("ls-files", "--error-unmatch", file.name).returncode:
            return ""
        found = git("rev-parse", "--short=12", "HEAD").stdout.strip()
        return found + ("+" if git("diff", "--quiet", "HEAD").returncode else "")
    except (OSError, subprocess.TimeoutExpired):
        return ""
