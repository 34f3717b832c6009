"""Independent pieces of work, run one after another; `engine.parallel` runs them in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import TypeVar

Piece = TypeVar("Piece", bound=Sized)
Result = TypeVar("Result")
Led = TypeVar("Led")


class Spread:
    """Runs pieces of work one after another."""

    ways: int = 1  # pieces that run at the same time

    def __call__(
        self, work: Callable[[Piece], Result], pieces: Sequence[Piece]
    ) -> Iterable[Result]:
        """The results of the pieces, in their order."""
        return (work(piece) for piece in pieces)

    def lead(self, work: Callable[[Spread], Led]) -> Led:
        """Run `work(self)`, which may spread several batches of pieces, and return its result.
        Other processes may run a copy of `work`: until the deadline, it must ask for the same
        pieces if it gets the same results."""
        return work(self)

    def fair(self, count: int, most: int) -> int:
        """Size of a piece when `count` items are divided evenly among all `ways`: in as few turns
        as possible, each of at most `most` items at the same time, and turns of one size."""
        each = max(1, most // self.ways)
        turns = -(-count // (self.ways * each))
        return max(1, -(-count // max(1, self.ways * turns)))


ALONE = Spread()
