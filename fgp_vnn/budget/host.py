"""Memory and cores available to this process, under the limits of its container and ulimit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROCESS, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """The file names that one version of Linux control groups (cgroups) uses."""

    limit: str
    held: str
    reclaimable: str  # the line of memory.stat with the bytes of cached files that can be dropped


_NONE = 1 << 62  # bytes; cgroup v1 writes a limit of at least this for "unlimited"
_FIRST = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND = _Files("memory.max", "memory.current", "inactive_file")


def cores() -> int:
    """Number of cores that this process may use, at most OMP_NUM_THREADS if that is set."""
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limits = [int(said)] if said.isdecimal() else []
    if sys.platform.startswith("linux"):
        limits += [len(os.sched_getaffinity(0)), *group_cores(PROCESS, MOUNT)]
    return max(1, min([os.cpu_count() or 1, *limits]))


def share_limits(parts: int) -> None:
    """Lower the memory limits (ulimit) of this process to its current use plus 1/`parts` of the
    rest."""
    import resource  # not on Windows, which has no such limits

    for kind, held in _limited():
        soft, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (held + max(0, soft - held) // parts, hard))


def total_memory() -> int:
    """Bytes that all processes together may hold."""
    import psutil

    limits = [limit for limit, _ in group_limits(PROCESS, MOUNT)]
    return min([int(psutil.virtual_memory().total), *limits])


def free_memory() -> int:
    """Bytes that this process may still allocate."""
    import psutil

    groups = [limit - held for limit, held in group_limits(PROCESS, MOUNT)]
    return max(0, min([int(psutil.virtual_memory().available), *groups, *_left_to_process()]))


def held_memory(process: int | None = None) -> int:
    """Resident memory of a process in bytes; by default of this one."""
    import psutil

    return int(psutil.Process(process).memory_info().rss)


def group_limits(process: Path, mount: Path) -> Iterator[tuple[int, int]]:
    """Limit and current use, in bytes, of each control group that the process is in.

    A group's limit also applies to the groups inside it. Inside a container, the path of the group
    may be its path on the host; then the group at the mount point is the container's.
    """
    for folder, first in _groups(process, mount, "memory"):
        yield from _limit(folder, _FIRST if first else _SECOND)


def group_cores(process: Path, mount: Path) -> Iterator[int]:
    """Number of cores, at least 1, that the CPU quota of each control group allows."""
    for folder, first in _groups(process, mount, "cpu"):
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if first else ("cpu.max",)
        words = [word for name in names for word in _text(folder / name).split()]
        if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
            yield max(1, int(words[0]) // int(words[1]))


def _groups(process: Path, mount: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """The folder of each control group that the process is in for a controller, and whether the
    group is of cgroup v1."""
    for line in _text(process).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = mount / controller if controllers else mount
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                yield folder, bool(controllers)


def _limit(group: Path, files: _Files) -> Iterator[tuple[int, int]]:
    limit = _text(group / files.limit).strip()
    if not limit.isdecimal() or int(limit) >= _NONE:  # "max", or no such file
        return
    held = _text(group / files.held).strip()
    statistics = dict(line.split(" ", 1) for line in _text(group / "memory.stat").splitlines())
    dropped = int(statistics.get(files.reclaimable, "0"))
    yield int(limit), max(0, int(held) - dropped) if held.isdecimal() else 0


def _left_to_process() -> Iterator[int]:
    """Bytes that this process may still allocate under each of its limits (ulimit)."""
    try:
        import resource
    except ImportError:  # on Windows, which has no such limits
        return
    for kind, held in _limited():
        yield resource.getrlimit(kind)[0] - held


def _limited() -> Iterator[tuple[int, int]]:
    """Each kind of memory that this process has a limit for, and its current use in bytes."""
    import resource

    import psutil

    for kind, name in ((resource.RLIMIT_AS, "vms"), (resource.RLIMIT_DATA, "data")):
        if resource.getrlimit(kind)[0] != resource.RLIM_INFINITY:
            held = psutil.Process().memory_info()
            yield kind, int(getattr(held, name, held.rss))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
