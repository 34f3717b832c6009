"""All mutations."""

from __future__ import annotations

from mutated_activations import ACTIVATIONS
from mutated_curved import CURVED
from mutated_cuts import CUTS
from mutated_defects import DEFECTS
from mutated_intervals import INTERVALS
from mutated_kernels import KERNELS
from mutated_proofs import PROOFS
from mutated_reading import READING
from mutated_rounding import ROUNDING
from mutated_search import SEARCH
from mutated_terms import TERMS
from mutation import Mutation

_SMOOTH = (*ACTIVATIONS, *CURVED, *INTERVALS)
_ALL = (*KERNELS, *ROUNDING, *TERMS, *DEFECTS, *SEARCH, *CUTS, *READING, *_SMOOTH, *PROOFS)
MUTATIONS = tuple(Mutation.of(*change) for change in _ALL)
