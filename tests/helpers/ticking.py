"""A budget that ends after so much work, however fast the machine is."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace

from fgp_vnn.budget.budget import Budget


@dataclass(frozen=True)
class Ticking(Budget):
    """Expires once it, or a share of it, has been asked for its time `moment` times."""

    moment: float
    memory: int = sys.maxsize
    asked: list[None] = field(default_factory=list)

    def left(self) -> float:
        self.asked.append(None)
        return self.moment - len(self.asked)

    def expired(self) -> bool:
        return self.left() < 0

    def share(self, part: float) -> Budget:
        used = len(self.asked)
        return replace(self, moment=used + part * max(self.moment - used, 0))
