"""Modules of torch that are loaded only when something uses them.

They describe tensors without data, export and quantise programs, and so on. A verification needs
none of that, and loading it takes a third of the time in which the command line starts. Each of
these modules is in its place from the start; the first look at one of its names loads it.

Only for a process of our own, since torch relies on some of them without looking at a name: before
`load_deferred`, torch.Generator, torch.compile and modules on the device "meta" do not work.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

DEFERRED = (
    "torch._meta_registrations",
    "torch.export",
    "torch.ao",
    "torch.quantization",
    "torch.nn.intrinsic",
    "torch.nn.qat",
    "torch.nn.quantizable",
    "torch.nn.quantized",
    "torch.masked",
    "torch.distributions",
)
_LOADING = threading.RLock()


def defer_modules(names: Collection[str] = DEFERRED) -> None:
    """Defer loading of these modules in this process, if they are not loaded already."""
    sys.meta_path.insert(0, _Finder(names))


def load_deferred() -> None:
    """Load all deferred modules, and defer no others from now on."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    for module in list(sys.modules.values()):
        if isinstance(module, _Deferred):
            module.load()


class _Deferred(ModuleType):
    """A module that is loaded when a name is looked up that it does not have yet."""

    def __getattr__(self, name: str) -> Any:
        # The import system and `inspect` ask every module for special names.
        if name.startswith("__") and name.endswith("__") and name != "__all__":
            raise AttributeError(name)
        self.load()
        return ModuleType.__getattribute__(self, name)

    def load(self) -> None:
        """Run the module's code, once; after an error, the next look runs it again."""
        with _LOADING:
            spec = self.__spec__
            if spec is None or not isinstance(spec.loader, _Later):
                return  # another thread has loaded it, or this one is loading it
            later = spec.loader
            spec.loader = self.__loader__ = later.usual
            try:
                later.usual.exec_module(self)
            except BaseException:
                spec.loader = self.__loader__ = later
                raise
            self.__class__ = ModuleType


class _Later:
    """A loader that leaves a module empty and keeps the usual loader for later."""

    def __init__(self, usual: Any) -> None:
        self.usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing yet."""


class _Finder:
    """Finds the modules to defer as the other finders do, and replaces their loader."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _Later(spec.loader)  # type: ignore[assignment]
                return spec
        return None
