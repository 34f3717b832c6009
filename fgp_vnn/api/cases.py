"""Networks for the cases of a property: loading, checks that the two fit, the joint verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.verdict import Verdict, summed
from fgp_vnn.base.words import plural
from fgp_vnn.network import LoadedNetwork, load_network
from fgp_vnn.property import Property
from fgp_vnn.property.model import Case, Variable
from fgp_vnn.property.numbers import same_layout


def box_points(prop: Property) -> NDArray[np.float32]:
    """The lower corner, the upper corner and the centre [points, inputs] of the property's first
    box, without points that overflow float32."""
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
    """Load the network of a file; yield it with the part of the property it serves, usually all.

    If an operand that must be constant depends on inputs that the property fixes, yield one network
    for each combination of their values, with the cases that have these values. With `all_inputs`,
    load only a network that is valid for all inputs. A final softmax is dropped if the property
    only compares outputs with each other. `watch` is called regularly and may raise.
    """
    left, whole = prop.cases, not compares_only(prop)
    while True:
        values = (
            np.where(_fixed(left[0]), left[0].lower, np.nan) if left and not all_inputs else None
        )
        points = box_points(replace(prop, cases=left[:1]))
        loaded = load_network(files[0], points=points, fixed=values, whole=whole, watch=watch)
        part = replace(prop, cases=tuple(case for case in left if _fixes(case, loaded.bound)))
        left = tuple(case for case in left if not _fixes(case, loaded.bound))
        check_fit(loaded, part, *map(str, files))
        yield loaded, part
        if not left:
            return


def _fixed(case: Case) -> NDArray[np.bool_]:
    """Which inputs [inputs] a case fixes at a value that float32 represents exactly."""
    with np.errstate(over="ignore"):
        single = case.lower.astype(np.float32) == case.lower
    return np.asarray((case.lower == case.upper) & single)


def _fixes(case: Case, bound: Mapping[int, float]) -> bool:
    """Whether a case fixes the inputs of `bound` at its values."""
    if not bound:
        return True
    places, values = list(bound), list(bound.values())
    ends = case.lower[places], case.upper[places]
    return all(bool((end == values).all()) for end in ends)


def check_fit(loaded: LoadedNetwork, prop: Property, model: str, path: str) -> None:
    """Refuse a property of other sizes than the network, or one whose meaning the dropped softmax
    changes."""
    check_sizes(loaded.network.inputs, loaded.network.outputs, prop, model, path)
    check_shapes(loaded, prop.input_variables, prop.output_variables)
    if loaded.comparisons_only and not compares_only(prop):
        raise UnsupportedError(
            f"{model} ends in a softmax, so only comparisons of outputs with each other can be "
            f"decided; {path} asks for more"
        )


def check_sizes(inputs: int, outputs: int, prop: Property, model: str, path: str) -> None:
    """Refuse a property with other numbers of inputs or outputs than the network."""
    for what, has, wants in (("input", inputs, prop.inputs), ("output", outputs, prop.outputs)):
        if has != wants:
            raise InputError(
                f"{path} is about a network with {plural(wants, what)}, but {model} has {has}: "
                "the two do not belong together"
            )


def check_shapes(
    loaded: LoadedNetwork, inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> None:
    """Refuse declared variables whose axes are in another order than the network's."""
    for variables, shape in ((inputs, loaded.input_shape), (outputs, loaded.output_shape)):
        if len(variables) == 1 and not same_layout(variables[0].shape, shape):
            declared = f"{variables[0].name} is declared with shape {list(variables[0].shape)}"
            raise InputError(f"{declared}, but the network has shape {list(shape)}")


def join_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict on all cases: `sat` if one case is broken, `unsat` if all are proved."""
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
    """Whether each row compares y_i - y_j with 0, whose sign a softmax preserves."""
    for case in prop.cases:
        for conjunction in case.unsafe:
            if conjunction.limits.any() or conjunction.rows.sum(axis=1).any():
                return False
            if ((conjunction.rows != 0).sum(axis=1) > 2).any():
                return False
    return True
