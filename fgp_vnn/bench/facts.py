"""What a result depends on beside its instance: versions and the machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from fgp_vnn import __version__


def versions() -> dict[str, str]:
    """The versions of everything that a result may depend on."""
    found = {"fgp-vnn": __version__, "python": platform.python_version()}
    for package in ("torch", "onnxruntime", "onnx", "vnnlib", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Where the time was spent: processor, cores, threads."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "system": f"{platform.system()} {platform.release()}",
    }
