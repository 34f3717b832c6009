"""Display of results: in a notebook, on a terminal, and as plain values."""

from __future__ import annotations

import html
import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.images import ImageLayout, image_layout, png_url, signed_colours, unit_pixels

_SHOWN = 96  # approximate side of an image on a page, in pixels
_CELL = "padding:2px 12px 2px 0;text-align:left"


class Shown:
    """A result that can display itself; subclasses provide its facts and the inputs to draw."""

    def as_dict(self) -> dict[str, Any]:
        """All values, as plain Python objects for JSON."""
        raise NotImplementedError

    def values(self, *names: str) -> dict[str, Any]:
        """The fields with these names, as plain Python objects for JSON, which knows no infinity: a
        number that is not finite becomes None."""
        found = {name: getattr(self, name) for name in names}
        return {name: _plain(value) for name, value in found.items()}

    def title(self) -> str:
        """The answer in a few words."""
        raise NotImplementedError

    def facts(self) -> dict[str, str]:
        """Further facts to show, by name."""
        return {}

    def compared(self) -> tuple[Any, Any] | None:
        """The input and its counterexample, in the shape of the input; None if one is missing."""
        return None

    def __repr__(self) -> str:
        facts = "".join(f", {name} {value}" for name, value in self.facts().items())
        return f"{type(self).__name__}({self.title()}{facts})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='{_CELL}'>{html.escape(name)}</th>"
            f"<td style='{_CELL}'>{html.escape(value)}</td></tr>"
            for name, value in self.facts().items()
        )
        title = f"<b>{html.escape(type(self).__name__)}: {html.escape(self.title())}</b>"
        return f"<div>{title}<table>{rows}</table>{self._pictures()}</div>"

    def show(self) -> None:
        """Display the result: as HTML in a notebook, as text and coloured blocks on a terminal."""
        if "ipykernel" in sys.modules:
            from IPython import get_ipython
            from IPython.display import display

            if get_ipython() is not None:  # this process is a kernel
                display(self)
                return
        from rich.console import Console

        console = Console()
        console.print(f"{type(self).__name__}: {self.title()}", style="bold", highlight=False)
        for name, value in self.facts().items():
            console.print(f"  {name}: {value}", highlight=False, soft_wrap=True)
        drawn = _drawn(self.compared())
        if drawn is not None:
            from fgp_vnn.base.blocks import side_by_side

            console.print(side_by_side(drawn))

    def _pictures(self) -> str:
        drawn = _drawn(self.compared())
        if drawn is None:
            return ""
        side = max(drawn[0].shape[:2])
        scale = max(1, round(_SHOWN / side))
        names = ("input", "counterexample", "change")
        return "".join(
            f"<figure style='display:inline-block;margin:4px 12px 4px 0'>"
            f"<img src='{png_url(pixels)}' width='{pixels.shape[1] * scale}' "
            f"height='{pixels.shape[0] * scale}' style='image-rendering:pixelated' "
            f"alt='{name}'><figcaption>{name}</figcaption></figure>"
            for name, pixels in zip(names, drawn, strict=True)
        )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        numbers = np.asarray(value, dtype=np.float64)
        known = numbers.astype(object)
        known[~np.isfinite(numbers)] = None
        return known.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return dict(value) if isinstance(value, dict) else value


def flat_values(x: Any) -> NDArray[np.float64]:
    """A numpy array or torch tensor as a flat float64 array."""
    array = x.detach().cpu().numpy() if hasattr(x, "detach") else x
    return np.asarray(array, dtype=np.float64).reshape(-1)


def _drawn(compared: tuple[Any, Any] | None) -> tuple[Any, Any, Any] | None:
    """Pixels [height, width, 1 or 3] of the input, the counterexample and their difference; None if
    the input is not an image."""
    if compared is None:
        return None
    shape = tuple(int(size) for size in np.shape(compared[0]))
    before, after = (flat_values(x) for x in compared)
    layout: ImageLayout | None = image_layout(shape, before.size)
    if layout is None:
        return None
    limits = float(min(before.min(), after.min())), float(max(before.max(), after.max()))
    change = signed_colours(layout.pixels(after - before))
    return *(unit_pixels(layout, x, limits) for x in (before, after)), change  # type: ignore[return-value]
