"""A chain of matrix-vector products as a single matrix."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, fx, nn

from fgp_vnn.base.rounding import unit
from fgp_vnn.network.maps.kinds import kind
from fgp_vnn.network.maps.matrix import compressed, most_in_a_row
from fgp_vnn.network.onnx.cuts import AffinePart, CutGraph

PRODUCTS = {"Gemm", "MatMul"}
RESHAPES = {"Identity", "Reshape"}


def factors_of(graph: CutGraph, cut: AffinePart) -> list[Tensor]:
    """The matrices of a chain of matrix-vector products, the last one first; [] for other parts."""
    factors: list[Tensor] = []
    for node in cut.inside:
        varying = [n for n in node.all_input_nodes if n in graph.varying]
        if not varying:
            continue
        if len(varying) != 1 or len(cut.sources) != 1:
            return []
        size = _size(varying[0])
        if kind(node) in PRODUCTS:
            matrix = _matrix(graph.module, node, size)
            if matrix is None:
                return []
            factors.insert(0, matrix)
        elif kind(node) not in RESHAPES and not _adds_constant(node, varying[0]):
            return []
    return factors


def _adds_constant(node: fx.Node, varying: fx.Node) -> bool:
    """Whether a node adds a constant to a value, which keeps its size, or subtracts one."""
    first, *others = node.args if kind(node) in ("Add", "Sub") else (None,)
    return first is varying and varying not in others and _size(node) == _size(varying)


def _matrix(module: fx.GraphModule, node: fx.Node, size: int) -> Tensor | None:
    """The matrix of a product's constant operand, if the other one is a vector of that size."""
    target = module.get_submodule(str(node.target))
    if isinstance(target, nn.Linear):
        return target.weight.detach() if target.in_features == size else None
    constants = [a for a in node.args if isinstance(a, fx.Node) and a.op == "get_attr"]
    if kind(node) != "MatMul" or len(constants) != 1:
        return None
    matrix = module.get_buffer(str(constants[0].target))
    rows = node.args[0] is constants[0]
    if matrix.dim() != 2 or matrix.shape[1 if rows else 0] != size:
        return None
    return matrix if rows else matrix.T


def _size(node: fx.Node) -> int:
    return prod(node.meta["shape"])


def sizes(factors: list[Tensor], offset: Tensor) -> tuple[Tensor, Tensor]:
    """`Dense.terms` of a product of matrices and of its offset, enlarged by the underflow error,
    which the factors multiply by their sizes."""
    size, columns = unit(offset.dtype), sum(factor.shape[1] for factor in factors)
    carried = 4 * (columns + factors[-1].shape[1]) * size.underflow / size.eps
    for factor in factors:
        carried *= max(1.0, float(factor.abs().sum()))
    return composed([f.abs() for f in factors]) + carried, offset + carried


def roundings(factors: list[Tensor]) -> int:
    """Upper bound on the roundings of a term of a product of matrices, multiplied in any order, and
    of its offset."""
    count, reach = 0, 1
    for factor in factors:  # a row of the product so far has at most `reach` nonzero entries
        reach = min(factor.shape[1], reach * most_in_a_row(factor))
        count += reach + 2
    return count


def composed(factors: list[Tensor]) -> Tensor:
    """The product of matrices; of a single one, an exact copy."""
    *before, product = factors
    sparse = [compressed(factor) for factor in before]
    if any(part is not None for part in sparse):
        for factor, part in zip(reversed(before), reversed(sparse), strict=True):
            product = factor @ product if part is None else part.push(product.T).T
    elif before:
        product = torch.linalg.multi_dot(factors)
    return product.clone(memory_format=torch.contiguous_format)
