"""The engines that a user can choose from, one per file.

Each module here is an engine, and its name is the name the user gives. It has
- `SETTINGS`: for each question that it answers, the settings that it uses, apart from those that
  all engines use;
- `steps()`: for each of these questions, its steps in order; the last one gives a verdict.

The steps are imported inside `steps`, so that the names are known before torch is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    from fgp_vnn.engine.steps import Step

Question = Literal["verify", "certify", "radius"]
Steps = Mapping[Question, "Sequence[Step[Any]]"]
WALK = ("variant", "alternate", "signed", "combined", "cache_first", "batch")  # walk settings


class Engine(Protocol):
    """The interface of an engine's module."""

    SETTINGS: Mapping[Question, tuple[str, ...]]

    @staticmethod
    def steps() -> Steps:
        """The steps of each question."""
        ...


def _registered() -> dict[str, Engine]:
    """The engines by name; `auto`, the default, comes first."""
    names = sorted(
        (m.name for m in iter_modules(__path__)), key=lambda name: (name != "auto", name)
    )
    return {name: cast(Engine, import_module(f"{__name__}.{name}")) for name in names}


REGISTRY: Mapping[str, Engine] = _registered()


def engines_for(question: str) -> tuple[str, ...]:
    """The names of the engines that answer a question."""
    return tuple(name for name, engine in REGISTRY.items() if question in engine.SETTINGS)


def users_of(setting: str, question: str) -> tuple[str, ...]:
    """The engines that use a setting for a question; all of them if no engine names the setting."""
    if not any(setting in used for e in REGISTRY.values() for used in e.SETTINGS.values()):
        return engines_for(question)
    return tuple(
        name
        for name in engines_for(question)
        if setting in REGISTRY[name].SETTINGS[cast(Question, question)]
    )
