"""Independent pieces of work, run one after another; `engine.parallel` shares them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import TypeVar

Piece = TypeVar("Piece", bound=Sized)
Result = TypeVar("Result")
Led = TypeVar("Led")


class Spread:
    """Does pieces of work one after another."""

    ways: int = 1  # pieces that are done at the same time

    def __call__(
        self, work: Callable[[Piece], Result], pieces: Sequence[Piece]
    ) -> Iterable[Result]:
        """The results of the pieces, in their order."""
        return (work(piece) for piece in pieces)

    def lead(self, work: Callable[[Spread], Led]) -> Led:
        """Run `work(self)`, which may spread several batches of pieces, and return its result.
        Copies may run `work` too: given the same results it has to ask for the same pieces, as long
        as time is not up."""
        return work(self)

    def fair(self, count: int, most: int) -> int:
        """How many of `count` things make up a piece, at most `most` in all pieces at a time."""
        return max(1, min(most // self.ways, -(-count // self.ways)))


ALONE = Spread()
