"""The part of a region that meets a disjunct, as half-spaces.

A point of a region has -s z <= 0 for each neuron with sign s; a point that meets a disjunct also
has g <= 0 for the rows of the disjunct.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fgp_vnn.query import Query
from fgp_vnn.regions.forms import MapForms, affine_forms
from fgp_vnn.regions.halfspaces import HalfSpaces, without_implied


def region_spaces(query: Query, signs: Tensor, disjunct: Tensor) -> HalfSpaces:
    """The part of each region [regions, neurons] that meets a disjunct [regions]."""
    pattern = torch.split(signs > 0, list(query.network.widths), -1)
    forms = affine_forms(query.network, query.domain, pattern)
    every = torch.arange(len(signs), device=signs.device)
    return layer_spaces(query, forms, signs, disjunct, every)


def layer_spaces(
    query: Query, forms: Sequence[MapForms], signs: Tensor, disjunct: Tensor, at: Tensor
) -> HalfSpaces:
    """The same for the regions `at`, from the forms of each layer and of the output."""

    def of_polyhedra(part: Tensor) -> Tensor:
        # A form that is the same in all regions is stored once.
        return part.expand(len(at), *part.shape[1:]) if len(part) == 1 else part[at]

    rows = torch.cat([of_polyhedra(layer.columns).transpose(1, 2) for layer in forms], 1)
    values = torch.cat([of_polyhedra(layer.values) for layer in forms], 1)
    errors = torch.cat([of_polyhedra(layer.error) for layer in forms], 1)
    return oriented(query, HalfSpaces(rows, values, errors), signs[at], disjunct[at])


def oriented(query: Query, forms: HalfSpaces, signs: Tensor, disjunct: Tensor) -> HalfSpaces:
    """Half-spaces of all neurons, oriented by the region's signs [polyhedra, neurons], and of the
    rows of its disjunct; the rows of other disjuncts become zeros."""
    mine = disjunct.unsqueeze(1) == query.disjunct.unsqueeze(0)  # [polyhedra, outputs]
    weight = torch.cat([torch.where(signs > 0, -1, 1), mine], 1).to(forms.values.dtype)
    rows = forms.rows * weight.unsqueeze(-1)
    spaces = HalfSpaces(rows, forms.values * weight, forms.errors * weight.abs())
    return without_implied(query.domain, spaces)
