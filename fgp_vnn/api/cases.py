"""A network and a property together: whether they fit, and one verdict on all cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.verdict import Verdict, summed
from fgp_vnn.network import LoadedNetwork, load_network
from fgp_vnn.property import Property
from fgp_vnn.property.model import Case


def asked_about(prop: Property) -> NDArray[np.float32]:
    """Two corners and the centre [points, inputs] of the first box of a property."""
    boxes = [(case.lower, case.upper) for case in prop.cases[:1]]
    rows = [[low, high, low / 2 + high / 2] for low, high in boxes]
    with np.errstate(over="ignore"):
        points = np.reshape(rows, (-1, prop.inputs)).astype(np.float32)
    return points[np.isfinite(points).all(1)]


def load_for(
    files: tuple[Path, Path],
    prop: Property,
    *,
    all_inputs: bool = False,
    watch: Callable[[], None] = lambda: None,
) -> Iterator[tuple[LoadedNetwork, Property]]:
    """The network of a file, and the part of the property that it is for: most often all of it.

    Where an operand has to be constant and depends on inputs that the property fixes, there is a
    network for each choice of their values, and its part are the cases with these values. With
    `all_inputs`, only a network that is for all inputs is given. A softmax at the end is part
    of it only where the property is about more than the order of the outputs. `watch` is called now
    and then.
    """
    left, whole = prop.cases, not compares_only(prop)
    while True:
        values = (
            np.where(_fixed(left[0]), left[0].lower, np.nan) if left and not all_inputs else None
        )
        points = asked_about(replace(prop, cases=left[:1]))
        loaded = load_network(files[0], points=points, fixed=values, whole=whole, watch=watch)
        part = replace(prop, cases=tuple(case for case in left if _fixes(case, loaded.bound)))
        left = tuple(case for case in left if not _fixes(case, loaded.bound))
        check_fit(loaded, part, *map(str, files))
        yield loaded, part
        if not left:
            return


def _fixed(case: Case) -> NDArray[np.bool_]:
    """Which inputs [inputs] a case fixes at a float32."""
    with np.errstate(over="ignore"):
        single = case.lower.astype(np.float32) == case.lower
    return np.asarray((case.lower == case.upper) & single)


def _fixes(case: Case, bound: Mapping[int, float]) -> bool:
    """Whether a case fixes these inputs at these values."""
    if not bound:
        return True
    places, values = list(bound), list(bound.values())
    ends = case.lower[places], case.upper[places]
    return all(bool((end == values).all()) for end in ends)


def check_fit(loaded: LoadedNetwork, prop: Property, model: str, path: str) -> None:
    """Refuse a property that is about another network, or that a dropped softmax changes."""
    check_sizes(loaded.network.inputs, loaded.network.outputs, prop, model, path)
    if loaded.comparisons_only and not compares_only(prop):
        raise UnsupportedError(
            f"{model} ends in a softmax, so only comparisons of outputs with each other can be "
            f"decided; {path} asks for more"
        )


def check_sizes(inputs: int, outputs: int, prop: Property, model: str, path: str) -> None:
    """Refuse a property that is about a network of another size."""
    for what, has, wants in (("inputs", inputs, prop.inputs), ("outputs", outputs, prop.outputs)):
        if has != wants:
            raise InputError(
                f"{path} is about a network with {wants} {what}, but {model} has {has}: "
                "the two do not belong together"
            )


def join_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict on all cases: broken if one is, proved if all are."""
    if not verdicts:
        reason = "the constraints of the property contradict each other"
        return Verdict("unsat", "property", reason=reason)
    order = ("sat", "timeout", "unknown", "unsat")
    chosen = min(verdicts, key=lambda verdict: order.index(verdict.status))
    if chosen.status == "unsat":
        chosen = max(verdicts, key=lambda verdict: sum(verdict.seconds.values()))
    seconds = summed([verdict.seconds for verdict in verdicts])
    return replace(chosen, seconds=seconds, statistics=summed([v.statistics for v in verdicts]))


def compares_only(prop: Property) -> bool:
    """Whether each row is y_i - y_j against 0, which a softmax does not change."""
    for case in prop.cases:
        for conjunction in case.unsafe:
            if conjunction.limits.any() or conjunction.rows.sum(axis=1).any():
                return False
            if ((conjunction.rows != 0).sum(axis=1) > 2).any():
                return False
    return True
