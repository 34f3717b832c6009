"""The checker: decides whether a certificate proves that a property holds.

A property is a union of cases, each a box of inputs and an unsafe set: a disjunction of
conjunctions of rows g_j(y) = row_j . y - limit_j <= 0. It holds if no disjunct of any case can be
met. A disjunct cannot be met in a part of the box if some sum of its rows, with nonnegative
weights, is positive there. It cannot be met in the box if it cannot be met in any of the parts that
cover it.

The checker trusts nothing in a certificate. Its trees divide a box into parts, which cover the box
by construction. Its slopes, multipliers and weights only choose among valid bounds, and all bounds
are computed here (bounds.py). So a wrong certificate can fail to prove something true, but cannot
prove anything false.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line
from fgp_vnn.certificate.checker.bounds import ENTRIES, Enclosure, proved
from fgp_vnn.certificate.checker.forms import MOST_ENTRIES, Array
from fgp_vnn.certificate.checker.lines import Leaf, Signs
from fgp_vnn.certificate.checker.network import CheckedNetwork, read_network
from fgp_vnn.certificate.checker.proof import Certificate, ProofStep, read_certificate
from fgp_vnn.certificate.checker.trees import LEAF, Level, SignLeaves, box_levels, sign_leaves
from fgp_vnn.certificate.checker.unsafe import Unsafe, at_least_zero
from fgp_vnn.property.load import parse_property
from fgp_vnn.property.model import Case, Property

BATCH = 256


@dataclass
class Checked:
    """Statistics of a checked certificate."""

    watch: Callable[[], None] = field(repr=False)  # called after each batch of bounds
    cases: int = 0
    disjuncts: int = 0
    lemmas: int = 0  # bounds of hidden neurons
    leaves: int = 0  # parts of a box for which a bound was computed
    margin: float = field(default=np.inf)  # the smallest bound among those that must be positive


def digest(data: bytes) -> str:
    """The SHA-256 of a file's content, given decompressed and with external weights embedded."""
    return hashlib.sha256(data).hexdigest()


def check_files(
    certificate: bytes, network: bytes, prop: bytes, watch: Callable[[], None] = lambda: None
) -> Checked:
    """Check a certificate against a network and a property, all given as file contents; `watch` is
    called regularly and may raise to stop."""
    claimed = read_certificate(certificate)
    for what, content, name in (
        ("network", network, claimed.network),
        ("property", prop, claimed.property),
    ):
        if digest(content) != name:
            raise InputError(f"it is about another {what}, with the SHA-256 {name[:64]}")
    return check(claimed, understood(network), parse_property(prop), watch)


def understood(network: bytes) -> CheckedNetwork:
    """Read the network from a file's content; raises InputError for any defect."""
    try:
        return read_network(network)
    except InputError:
        raise
    except Exception as error:  # raised by onnx and numpy on unforeseen files
        raise UnsupportedError(f"the network cannot be read: {one_line(error)}") from None


def check(
    certificate: Certificate,
    network: CheckedNetwork,
    prop: Property,
    watch: Callable[[], None] = lambda: None,
) -> Checked:
    """Check every step; raises InputError with the reason if the proof fails.

    `watch` is called regularly and may raise to stop.
    """
    if (network.inputs, network.maps[-1].outputs) != (prop.inputs, prop.outputs):
        raise InputError("the network and the property do not fit together")
    checked = Checked(watch)
    steps: dict[int, list[tuple[int, ProofStep]]] = {}  # by case
    for index, step in enumerate(certificate.steps):
        steps.setdefault(step.case, []).append((index, step))
    for number, case in enumerate(prop.cases):
        _check_case(network, case, number, steps.get(number, []), checked)
        checked.cases += 1
        checked.disjuncts += len(case.unsafe)
    if strange := [case for case in steps if not 0 <= case < len(prop.cases)]:
        raise InputError(f"a step is about case {strange[0]}, which the property does not have")
    return checked


def _check_case(
    network: CheckedNetwork,
    case: Case,
    number: int,
    steps: list[tuple[int, ProofStep]],
    checked: Checked,
) -> None:
    closed: set[int] = set()
    enclosure: Enclosure | None = None
    for index, step in steps:
        try:
            if step.kind == "boxes":
                closed |= _check_boxes(network, case, step, checked)
                continue
            if enclosure is None:
                enclosure = Enclosure(network, case.lower[None], case.upper[None])
            if step.kind == "lemma":
                check_lemma(enclosure, step, checked)
            elif step.kind == "close":
                closed |= _check_close(enclosure, case, step, checked)
            else:
                raise InputError(f"kind {step.kind!r} is not known")
        except (ValueError, LookupError, OverflowError) as error:  # also from unforeseen shapes
            raise InputError(f"step {index} ({step.kind}): {error}") from None
    left = [d for d in range(len(case.unsafe)) if d not in closed]
    if left:
        raise InputError(f"case {number}: nothing is proved about disjunct {left[0]}")


def check_lemma(enclosure: Enclosure, step: ProofStep, checked: Checked) -> None:
    """Prove bounds of hidden neurons and store them in `enclosure` for later steps."""
    network, layer = enclosure.network, step.layer
    if not 0 <= layer < len(network.widths):
        raise InputError(f"the network has no layer {layer}")
    neurons, sides = step.arrays["neurons"], step.arrays["sides"]
    within = (neurons >= 0) & (neurons < network.widths[layer])
    if len(neurons) != len(sides) or not within.all() or not np.isin(sides, (-1, 1)).all():
        raise InputError("a bound is about a neuron that the layer does not have")
    leaves = sign_leaves(step.arrays["tree"], sum(network.widths[:layer]), len(neurons))
    least = np.full(len(neurons), np.inf)
    for part in _batches(len(leaves.tree), network.inputs + sum(network.widths)):
        tree = leaves.tree[part]
        rows = np.zeros((len(tree), 1, network.widths[layer]))
        rows[np.arange(len(tree)), 0, neurons[tree]] = sides[tree]
        chosen = _choices(network, layer, step, leaves, part)
        np.minimum.at(least, tree, enclosure.least(layer, rows, chosen)[:, 0])
        checked.watch()
    every = np.arange(network.widths[layer])[None]
    for side in (1, -1):
        best = np.full(network.widths[layer], -np.inf)
        np.maximum.at(best, neurons[sides == side], least[sides == side])
        enclosure.learn(layer, every, best[None], below=side < 0)
    checked.lemmas += len(neurons)
    checked.leaves += len(leaves.tree)


def _check_close(enclosure: Enclosure, case: Case, step: ProofStep, checked: Checked) -> set[int]:
    """Check that trees of neuron splits close their disjuncts in the whole box; returns these."""
    network, target = enclosure.network, len(enclosure.network.widths)
    unsafe = Unsafe(case)
    disjuncts = unsafe.disjuncts(step)
    leaves = sign_leaves(step.arrays["tree"], sum(network.widths), len(disjuncts))
    weights = unsafe.weights(step, len(leaves.tree))
    each = network.inputs + sum(network.widths) + unsafe.rows.shape[1] + len(unsafe.limits)
    for part in _batches(len(leaves.tree), each):
        chosen = _choices(network, target, step, leaves, part)
        mixed = unsafe.mixed(weights[part], disjuncts[leaves.tree[part], None])
        _demand_positive(unsafe.least(enclosure, mixed, chosen), checked)
    checked.leaves += len(leaves.tree)
    return set(disjuncts.tolist())


def _check_boxes(
    network: CheckedNetwork, case: Case, step: ProofStep, checked: Checked
) -> set[int]:
    """Check that a tree of input splits closes its disjuncts in each of its boxes; returns
    these."""
    for leaf, bound in box_bounds(network, case, step):
        _demand_positive(bound, checked)
        checked.leaves += len(leaf)
    return set(step.arrays["disjuncts"].tolist())


def box_bounds(
    network: CheckedNetwork, case: Case, step: ProofStep, only: NDArray[np.bool_] | None = None
) -> Iterator[tuple[NDArray[np.int64], Array]]:
    """Yield leaves [batch] of a tree of boxes and lower bounds [batch, disjuncts] of their sums.

    The signs of neurons known in a box hold in its parts. So some inner nodes are bounded first,
    and the boxes inside start from their signs. `only` [leaves] selects the leaves; None: all.
    """
    unsafe, tree, neurons = Unsafe(case), step.arrays["tree"], sum(network.widths)
    disjuncts = unsafe.disjuncts(step)
    weights = unsafe.weights(step, int((tree == LEAF).sum()))
    each = len(disjuncts) * max(len(unsafe.limits), unsafe.rows.shape[1], *network.widths, 1)
    if max(each, len(tree) * neurons // 100) > MOST_ENTRIES:
        raise UnsupportedError("too many boxes or disjuncts at once to be checked")
    levels = list(box_levels(tree, step.arrays["cuts"], case.lower, case.upper))
    around: Signs | None = None
    for level, boxes in zip(levels, _wanted(levels, only), strict=True):
        signs = np.zeros((len(level.leaf), neurons), dtype=np.int8)
        for chosen in _batches(len(boxes), each, BATCH):
            part = boxes[chosen]
            inside = None if around is None else around[level.around[part]]
            enclosure = Enclosure(network, level.lower[part], level.upper[part], inside)
            signs[part] = enclosure.signs()
            leaf = level.leaf[part]
            mixed = unsafe.mixed(weights[leaf], disjuncts[None])
            yield leaf[leaf != LEAF], unsafe.least(enclosure, mixed)[leaf != LEAF]
        around = signs


def _wanted(levels: list[Level], only: NDArray[np.bool_] | None) -> list[NDArray[np.int64]]:
    """The boxes to bound in each level: the leaves in `only`, and the inner nodes around them."""
    if only is None:
        return [np.arange(len(level.leaf)) for level in levels]
    result = []
    around = np.zeros(0, dtype=np.int64)
    for level in reversed(levels):
        wanted = (level.leaf != LEAF) & only[level.leaf]
        wanted[around] = True
        around = np.unique(level.around[wanted])
        result.append(np.flatnonzero(wanted))
    return result[::-1]


def _demand_positive(bound: Array, checked: Checked) -> None:
    checked.watch()
    if not (np.isfinite(bound) & (bound > 0)).all():
        worst = float(proved(bound).min())
        raise InputError(f"a leaf has the bound {worst:.3g}, which is not greater than 0")
    checked.margin = min(checked.margin, float(bound.min(initial=np.inf)))


def _batches(count: int, each: int, most: int = 4 * BATCH) -> list[slice]:
    """Slices of range(count) for batches, if one item needs `each` numbers."""
    size = max(1, min(most, ENTRIES // max(1, each)))
    return [slice(begin, begin + size) for begin in range(0, count, size)]


def _choices(
    network: CheckedNetwork, target: int, step: ProofStep, leaves: SignLeaves, part: slice
) -> list[Leaf]:
    """The slopes, assumed signs and multipliers of a batch of leaves, for each layer before the
    target."""
    widths = network.widths[:target]
    neurons, count = sum(widths), len(leaves.tree)
    columns, given = step.arrays["columns"], step.arrays["slopes"]
    within = len(columns) <= neurons and ((columns >= 0) & (columns < neurons)).all()
    if given.shape != (count, len(columns)) or not within:
        raise InputError("the number of slopes does not fit the leaves and neurons")
    values = at_least_zero(step.arrays["multipliers"], "multiplier")
    if len(values) != len(leaves.leaf):
        raise InputError("the number of multipliers does not fit the assumptions")
    begin, end, _ = part.indices(count)
    slopes = np.full((end - begin, neurons), np.nan)
    slopes[:, columns] = given[part] / 255
    signs = np.zeros(slopes.shape, dtype=np.int8)
    multipliers = np.zeros(slopes.shape)
    first, last = np.searchsorted(leaves.leaf, (begin, end))
    at = leaves.leaf[first:last] - begin, leaves.neuron[first:last]
    signs[at] = leaves.sign[first:last]
    multipliers[at] = values[first:last]
    ends = np.cumsum(widths)
    layers = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
    return [Leaf(slopes[:, k], signs[:, k], multipliers[:, k]) for k in layers]
