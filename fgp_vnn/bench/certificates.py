"""The certificates of a run: how many there are, their sizes and seconds, how many were refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fgp_vnn.bench.record import Record


@dataclass(frozen=True)
class Certificates:
    """Totals over the unsat results of a run, including those after the time limit."""

    unsat: int
    accepted: int
    refused: int
    bytes: int  # of accepted certificates only, as are the seconds
    solve: float  # seconds
    write: float
    check: float

    @property
    def missing(self) -> int:
        """The number of unsats without a certificate, or with one that could not be checked."""
        return self.unsat - self.accepted - self.refused

    def __str__(self) -> str:
        words = f"{self.accepted} of {self.unsat} unsat with an accepted certificate"
        words += f", {self.refused} refused" if self.refused else ""
        if not self.accepted:
            return words
        return (
            f"{words}; {self.bytes:,} bytes, {self.bytes // self.accepted:,} on average; seconds "
            f"to solve {self.solve:.1f}, to write {self.write:.1f}, to check {self.check:.1f}"
        )


def certificates_of(records: Iterable[Record]) -> Certificates:
    unsat = [record for record in records if record.claim == "unsat"]
    good = [record for record in unsat if record.certified]
    write = sum(record.seconds.get("certificate", 0.0) for record in good)
    return Certificates(
        unsat=len(unsat),
        accepted=len(good),
        refused=sum(record.certified is False for record in unsat),
        bytes=sum(record.statistics.get("certificate_bytes", 0) for record in good),
        solve=sum(record.run_time for record in good) - write,
        write=write,
        check=sum(record.seconds.get("check_certificate", 0.0) for record in good),
    )
