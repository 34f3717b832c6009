"""The time that is left."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A moment on the monotonic clock, infinity for none."""

    moment: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    def left(self) -> float:
        return self.moment - time.monotonic()

    def expired(self) -> bool:
        return self.left() <= 0

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or the one after so many seconds if that comes first."""
        return Deadline(min(self.moment, time.monotonic() + seconds))
