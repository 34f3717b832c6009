"""Lists of results, with display and conversion to tables."""

from __future__ import annotations

import html
from collections import Counter
from typing import Any, TypeVar

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural

Answer = TypeVar("Answer")


class Results(list[Answer]):
    """A list of results with a short display and a conversion to a table."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """The results as dicts of plain Python objects, for JSON."""
        return [result.as_dict() for result in self]  # type: ignore[attr-defined]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per result; needs pandas."""
        try:
            import pandas
        except ImportError:
            raise InputError("a frame needs pandas: pip install pandas") from None
        return pandas.DataFrame([_flat(row) for row in self.to_dicts()])

    def summary(self) -> str:
        """The number of results of each kind, in one line."""
        kinds = Counter(_kind(result) for result in self)
        counts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        return f"{plural(len(self), 'result')}: {counts}" if self else "no results"

    def _repr_html_(self) -> str:
        shown = "".join(result._repr_html_() for result in self[:10])  # type: ignore[attr-defined]
        more = f"<p>... and {len(self) - 10} more</p>" if len(self) > 10 else ""
        return f"<p>{html.escape(self.summary())}</p>{shown}{more}"

    def show(self) -> None:
        """Show the summary and the first ten results."""
        print(self.summary())
        for result in self[:10]:
            result.show()  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        shown = [f"  {number}: {result!r}" for number, result in enumerate(self[:10])]
        more = [f"  ... and {len(self) - 10} more"] if len(self) > 10 else []
        return "\n".join([self.summary(), *shown, *more])


def _kind(result: Any) -> str:
    """The result in a word: its status, or how its search ended."""
    return str(getattr(result, "status", getattr(result, "ended", ""))).replace("_", " ")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested dicts, such as statistics and counterexamples, into separate columns."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name}_{inner}": part for inner, part in value.items()}
        else:
            flat[name] = value
    return flat
