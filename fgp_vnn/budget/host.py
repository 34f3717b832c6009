"""Memory of this machine: what is free, under the limits of its container and of the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROCESS, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """Where a version of control groups keeps its numbers."""

    limit: str
    held: str
    reclaimable: str  # the line of memory.stat with the bytes of files that can be dropped


_NONE = 1 << 62  # bytes from which on a limit of the first version is none
_FIRST = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND = _Files("memory.max", "memory.current", "inactive_file")


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
    for line in _text(process).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, files = (mount / "memory", _FIRST) if controllers else (mount, _SECOND)
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                yield from _limit(folder, files)


def _limit(group: Path, files: _Files) -> Iterator[tuple[int, int]]:
    limit = _text(group / files.limit).strip()
    if not limit.isdecimal() or int(limit) >= _NONE:  # "max", or no such file
        return
    held = _text(group / files.held).strip()
    statistics = dict(line.split(" ", 1) for line in _text(group / "memory.stat").splitlines())
    dropped = int(statistics.get(files.reclaimable, "0"))
    yield int(limit), max(0, int(held) - dropped) if held.isdecimal() else 0


def _left_to_process() -> Iterator[int]:
    """Bytes up to each of the limits that were set for this process (ulimit)."""
    try:
        import resource
    except ImportError:  # on Windows, where there are none
        return
    import psutil

    for kind, name in ((resource.RLIMIT_AS, "vms"), (resource.RLIMIT_DATA, "data")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            held = psutil.Process().memory_info()
            yield limit - int(getattr(held, name, held.rss))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
