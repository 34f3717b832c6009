"""Memory and cores of this machine, under the limits of its container and of the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROCESS, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """Where a version of control groups keeps its numbers."""

    limit: str
    held: str
    reclaimable: str  # the line of memory.stat with the bytes of files that can be dropped


_NONE = 1 << 62  # bytes; cgroup v1 writes a limit this large for "unlimited"
_FIRST = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND = _Files("memory.max", "memory.current", "inactive_file")


def cores() -> int:
    """Cores that this process may use: at most OMP_NUM_THREADS, where that is set."""
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limits = [int(said)] if said.isdecimal() else []
    if sys.platform.startswith("linux"):
        limits += [len(os.sched_getaffinity(0)), *group_cores(PROCESS, MOUNT)]
    return max(1, min([os.cpu_count() or 1, *limits]))


def share_limits(parts: int) -> None:
    """Lower the memory limits (ulimit) of this process to one of `parts` shares of what is left."""
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
    """Bytes that this process may take besides what it holds."""
    import psutil

    groups = [limit - held for limit, held in group_limits(PROCESS, MOUNT)]
    return max(0, min([int(psutil.virtual_memory().available), *groups, *_left_to_process()]))


def held_memory(process: int | None = None) -> int:
    """Bytes of a process, by default of this one, that are in memory."""
    import psutil

    return int(psutil.Process(process).memory_info().rss)


def group_limits(process: Path, mount: Path) -> Iterator[tuple[int, int]]:
    """The limit of each control group that the process is in, and what the group holds.

    A group's limit is also that of the groups in it. Inside a container the path of the group may
    be that of the host, and then the group at the mount itself is the container's.
    """
    for folder, first in _groups(process, mount, "memory"):
        yield from _limit(folder, _FIRST if first else _SECOND)


def group_cores(process: Path, mount: Path) -> Iterator[int]:
    """The cores, at least one, that each control group of the process has time for."""
    for folder, first in _groups(process, mount, "cpu"):
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if first else ("cpu.max",)
        words = [word for name in names for word in _text(folder / name).split()]
        if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
            yield max(1, int(words[0]) // int(words[1]))


def _groups(process: Path, mount: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """The folder of each control group that the process is in for a controller, and whether it is
    one of the first version."""
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
    except ImportError:  # on Windows, where there are none
        return
    for kind, held in _limited():
        yield resource.getrlimit(kind)[0] - held


def _limited() -> Iterator[tuple[int, int]]:
    """The kinds of memory that this process has a limit for, and the bytes that it holds."""
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
