"""Arguments that several commands have, and what is said before the work when they are wrong."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import Any

from fgp_vnn.errors import InputError
from fgp_vnn.settings import DEVICES, ENGINES, PRECISIONS, VARIANTS

_SEARCH = ("engine", "variant", "device", "precision", "seed", "attack", "alternate", "lp")


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Fields of `Settings`, the same wherever something is searched for."""
    parser.add_argument("--engine", choices=ENGINES, default="auto")
    parser.add_argument("--variant", choices=VARIANTS, default="full-queue", help="of the walk")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--precision", choices=PRECISIONS, default="float64")
    parser.add_argument("--seed", type=int, default=0, help="of the attack's random starts")
    parser.add_argument(
        "--no-attack", dest="attack", action="store_false", help="search without attacks"
    )
    parser.add_argument(
        "--no-alternate",
        dest="alternate",
        action="store_false",
        help="leave inconclusive boundaries unknown, as the paper does",
    )
    parser.add_argument(
        "--lp",
        action="store_true",
        help="settle by HiGHS and Clarabel what projections leave inconclusive",
    )


def add_float32_semantics(parser: argparse.ArgumentParser) -> None:
    """One more field, for what decides VNN-LIB properties."""
    parser.add_argument(
        "--float32-semantics",
        action="store_true",
        help="unsat only if it holds for every order of evaluation in float32",
    )


def search_settings(args: argparse.Namespace, *more: str) -> dict[str, Any]:
    """The fields of `Settings` that all searches have, and those that are named."""
    return {name: getattr(args, name) for name in (*_SEARCH, *more)}


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Time and memory of a search in this process."""
    parser.add_argument("--timeout", help="seconds until the answer has to be there")
    parser.add_argument(
        "--memory", type=float, help="gigabytes for everything; if not given, half of what is free"
    )


def read_timeout(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 < seconds < math.inf):
        raise InputError(f"--timeout is {text!r}; it must be a positive number of seconds")
    return seconds


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=int, default=1, help="of torch; more pay only for large networks"
    )


def set_threads(threads: int) -> None:
    if threads < 1:
        raise InputError(f"--threads is {threads}; it must be at least 1")
    import torch

    torch.set_num_threads(threads)


def check_writable(path: Path, what: str) -> None:
    """Say before the work, not after it, that its result could not be written."""
    if path.is_dir():
        raise InputError(f"{what} {path} is a directory")
    if not path.parent.is_dir():
        raise InputError(f"{what} {path}: the folder {path.parent} does not exist")
    replaced = not path.exists() or path.is_file()  # by renaming a new file in its folder
    if replaced and not os.access(path.resolve().parent, os.W_OK):
        raise InputError(f"{what} {path}: the folder {path.parent} is not writable")
