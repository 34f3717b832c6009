"""Several networks in one text, as the competition lists them."""

from __future__ import annotations

import ast

from fgp_vnn.base.errors import InputError


def named_networks(text: str) -> dict[str, str] | None:
    """The paths of "[('f', 'a.onnx'), ('g', 'b.onnx')]" by their names, in their order; None for
    a text that is no list."""
    if not text.startswith("["):
        return None
    try:
        pairs = [(name, path) for name, path in ast.literal_eval(text)]
    except (ValueError, SyntaxError, TypeError):
        pairs = [("", "")]
    if not pairs:
        raise InputError("no network is named")
    if not all(isinstance(part, str) and part for pair in pairs for part in pair):
        raise InputError(f"not a list of named networks: {text!r}")
    if len(networks := dict(pairs)) < len(pairs):
        raise InputError(f"a network is named twice: {text!r}")
    return networks
