"""A run on a Ray cluster: one actor per core or GPU, each with a guarded worker."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fgp_vnn.base.cluster import Cluster
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.bench.guard import GuardedWorker, WorkerSpec
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.record import Answer

_CLOSE_SECONDS = 5.0  # for an actor to clean up before it is killed
_EXTRA_SECONDS = 330.0  # for an actor to start its worker, on top of the limits of the instance


class NodeWorker:
    """Runs on a node: keeps a guarded worker and receives the files of instances as bytes."""

    def __init__(self, spec: WorkerSpec, folder: str | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fgp-vnn-", dir=folder)
        if spec.certificates:
            spec = replace(spec, certificates=self._folder.name)
        self._worker = GuardedWorker(spec, Path(self._folder.name) / "worker.log")

    def start(self) -> int:
        """Start the worker, wait until it is warm, and return this process's id."""
        self._worker.start()
        return os.getpid()

    def close(self) -> None:
        """End the worker and delete its files; may be called while an instance runs."""
        self._worker.stop()
        self._folder.cleanup()

    def run(self, instance: Instance, files: list[tuple[str, bytes]]) -> tuple[Answer, bytes]:
        """Return the answer for the networks and the property in `files` (name, content), and the
        content of its certificate, if any."""
        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            local = []
            for number, (name, content) in enumerate(files):
                path = Path(folder) / f"{number}-{name}"
                path.write_bytes(content)
                local.append(str(path))
            answer = self._worker.run(
                replace(instance, network_files=tuple(local[:-1]), property_file=local[-1])
            )
        if not answer.certificate:
            return answer, b""
        written = Path(self._folder.name) / answer.certificate
        content = written.read_bytes()
        written.unlink()
        return answer, content


class RayWorker:
    """A `Solver` somewhere on the cluster."""

    def __init__(self, spec: WorkerSpec, cluster: Cluster) -> None:
        self._spec, self._cluster = spec, cluster
        self._actor: Any = None

    def run(self, instance: Instance) -> Answer:
        import ray

        prop = Path(instance.property_file)
        files = [*map(_network, instance.network_files), (prop.name, prop.read_bytes())]
        try:
            actor = self._started()
            own = instance.timeout + self._spec.grace
            limit = (2 if self._spec.certificates else 1) * own + _EXTRA_SECONDS
            running = actor.run.remote(instance, files)
            found: tuple[Answer, bytes] = ray.get(running, timeout=limit)
            if found[0].certificate:
                path = Path(self._spec.certificates) / found[0].certificate
                write_bytes(path, found[1], "certificate")
            return found[0]
        except ray.exceptions.GetTimeoutError:
            reason = "the node does not answer"
        except ray.exceptions.RayActorError as error:
            line = str(error).strip().partition("\n")[0]
            reason = f"the node's worker was lost: {line}"
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, InputError):
                raise error.cause from None
            reason = f"the node's worker failed: {error.cause!r}"
        self.close()
        return Answer("error", 0.0, reason=reason)

    def stop(self) -> None:
        self.close()  # `run` then sees that its actor is gone

    def close(self) -> None:
        import ray

        actor, self._actor = self._actor, None
        if actor is None or not ray.is_initialized():
            return
        with suppress(ray.exceptions.RayError):  # the actor or its node may be gone
            ray.get(actor.close.remote(), timeout=_CLOSE_SECONDS)
        ray.kill(actor)

    def _started(self) -> Any:
        """Return the actor; wait as long as needed until the cluster has room for a new one."""
        import ray

        if self._actor is None:
            make = ray.remote(max_concurrency=2, **self._cluster.resources)(NodeWorker)
            self._actor = make.remote(self._spec, self._cluster.folder)
            ray.get(self._actor.start.remote())
        return self._actor


def _network(name: str) -> tuple[str, bytes]:
    """Return name and content of a network as one file; an unreadable file is sent as it is."""
    path = Path(name)
    try:
        return path.name.removesuffix(".gz"), read_model(path)
    except InputError:  # the verifier will report the same error
        return path.name, path.read_bytes()
