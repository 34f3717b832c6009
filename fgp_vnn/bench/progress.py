"""Progress display of a run: a live view on a terminal, plain lines elsewhere, or only errors."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console, Group, RenderableType
from rich.text import Text

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.record import Record

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

COLOURS = {
    "sat": "yellow",
    "unsat": "green",
    "unknown": "blue",
    "timeout": "magenta",
    "error": "red",
}


def view(console: Console, total: int, slots: int, *, quiet: bool) -> View:
    """Return the view that suits the console, for `total` instances on `slots` workers."""
    if quiet:
        return View(console)
    return LiveView(console, total, slots) if console.is_terminal else PlainLines(console, total)


def bar_columns() -> list[ProgressColumn]:
    """Return the columns of a progress bar: the bar, counts, time so far and time to go."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    times = (TimeElapsedColumn(), TextColumn("to go"), TimeRemainingColumn())
    return [BarColumn(), MofNCompleteColumn(), *times]


class View(AbstractContextManager["View"]):
    """Receives all events of a run in order; shows only errors, as every other view does, too."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __exit__(self, *error: object) -> None: ...

    def started(self, slot: int, instance: Instance) -> None:
        """Worker number `slot` has started an instance."""

    def finished(self, slot: int, record: Record) -> None:
        """Worker number `slot` has a result."""
        faults = {"WRONG VERDICT": record.contradiction, "CERTIFICATE REFUSED": record.refusal}
        for title, fault in faults.items():
            if fault:
                text = Text(f"{title}: {record}: {fault}", style="bold white on red")
                self.console.print(text, soft_wrap=True)


class PlainLines(View):
    """One plain line per result."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console)
        self.total = total
        self.done = 0

    def finished(self, slot: int, record: Record) -> None:
        self.done += 1
        why = record.decided_by if record.solved else record.reason
        line = f"[{self.done}/{self.total}] {record.result} {record.run_time:.2f} s  {record}"
        self.console.print(Text(f"{line}  ({why})" if why else line), soft_wrap=True)
        super().finished(slot, record)


class LiveView(View):
    """A bar with elapsed and estimated time, counts of results, and each worker's instance."""

    def __init__(self, console: Console, total: int, slots: int) -> None:
        from rich.live import Live
        from rich.progress import Progress

        super().__init__(console)
        self._tally: Counter[str] = Counter()
        self._doing: list[tuple[Instance, float] | None] = [None] * slots
        self._bar = Progress(*bar_columns(), console=console)
        self._bar.add_task("instances", total=total)
        self._live = Live(get_renderable=self._picture, console=console, refresh_per_second=4)

    def __enter__(self) -> View:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def started(self, slot: int, instance: Instance) -> None:
        self._doing[slot] = (instance, time.monotonic())

    def finished(self, slot: int, record: Record) -> None:
        self._doing[slot] = None
        self._tally[record.result] += 1
        self._bar.advance(self._bar.task_ids[0])
        super().finished(slot, record)

    def _picture(self) -> RenderableType:
        solved = self._tally["sat"] + self._tally["unsat"]
        tally = Text(f"solved {solved}", style="bold")
        for word, colour in COLOURS.items():
            tally.append(f"   {word} {self._tally[word]}", style=colour)
        rows = [tally]
        for slot, doing in enumerate(self._doing):
            if doing is None:
                rows.append(Text(f"{slot}: idle", style="dim"))
            else:
                instance, since = doing
                seconds = f"{time.monotonic() - since:6.1f} / {instance.timeout:g} s"
                rows.append(Text(f"{slot}: {seconds}  {instance}", no_wrap=True))
        return Group(self._bar, *rows)


class Terminal(Console):
    """A console on standard output that raises BrokenPipeError when its reader is gone."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError
