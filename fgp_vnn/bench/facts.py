"""What a result depends on besides its instance: versions and the machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from fgp_vnn import __version__
from fgp_vnn.budget.host import total_memory


def versions() -> dict[str, str]:
    """Return the version of each package that a result may depend on."""
    found = {"fgp-vnn": __version__, "python": platform.python_version()}
    for package in ("torch", "onnxruntime", "onnx", "vnnlib", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return the processor, its cores, threads and memory, and the operating system."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return {
        "processor": processor,
        "cores": psutil.cpu_count(),
        "memory": f"{total_memory() / 2**30:.0f} GiB",
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "system": f"{platform.system()} {platform.release()}",
    }
