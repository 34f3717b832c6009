"""Pictures on a terminal, two pixels to a character."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.color import Color
from rich.style import Style
from rich.table import Table
from rich.text import Text

_WIDEST = 64  # largest side of a picture, in pixels


def side_by_side(pictures: Sequence[Any]) -> Table:
    """Pictures [height, width, 1 or 3] of values from 0 to 1, side by side."""
    table = Table.grid(padding=(0, 2))
    table.add_row(*(blocks(pixels) for pixels in pictures))
    return table


def blocks(unit: Any) -> Text:
    """A picture in half blocks: the foreground is the upper pixel, the background the lower one."""
    if unit.shape[2] not in (1, 3):
        unit = unit.mean(axis=2, keepdims=True)
    step = -(-max(unit.shape[:2]) // _WIDEST)
    pixels = (np.broadcast_to(unit, (*unit.shape[:2], 3)) * 255).round().astype(int)[::step, ::step]
    text = Text()
    for row in range(0, len(pixels), 2):
        for column in range(pixels.shape[1]):
            upper = Color.from_rgb(*pixels[row, column].tolist())
            below = pixels[row + 1, column].tolist() if row + 1 < len(pixels) else None
            lower = None if below is None else Color.from_rgb(*below)
            text.append("\u2580", Style(color=upper, bgcolor=lower))
        text.append("\n")
    return text
