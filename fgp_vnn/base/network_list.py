"""The competition's notation for a list of several networks."""

from __future__ import annotations

import ast
from collections import Counter

from fgp_vnn.base.errors import InputError, plain


def named_networks(text: str) -> dict[str, str] | None:
    """Parse "[('f', 'a.onnx'), ('g', 'b.onnx')]" to a dict from names to paths, in this order; None
    if the text is not a list."""
    if not text.startswith("["):
        return None
    try:
        pairs = [(name, path) for name, path in ast.literal_eval(text)]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pairs = [("", "")]
    if not pairs:
        raise InputError("no network is named")
    if not all(isinstance(part, str) and part for pair in pairs for part in pair):
        raise InputError(f"not a list of named networks: {plain(text, 200)}")
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise InputError(f"network {name!r} is given twice")
    return dict(pairs)
