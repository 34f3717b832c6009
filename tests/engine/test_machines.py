"""What is no tie is decided alike by every machine: no verdict hangs on the last bits.

Processors, libraries and numbers of threads add up in different orders. The same is tried by
settings of the libraries, in processes of their own, and by shaking the last bits themselves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.network.model import Combination, Dense
from fgp_vnn.query import Query
from radius_check import case as radius_case
from tests.engine.decisions import CASES, DOMAINS, ENGINES, RADII, make_query, suits, truth
from tests.helpers.random_networks import generator

VARIANTS = 6  # every engine gets one of every third case
# The first chooses how matrices are multiplied, the second how all else is computed, and neither
# sees the other. The best that the processor has is what all other tests run with.
MACHINE = {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "2"}
PARTS = 3  # of the cases: this machine decides one, and other tests decide the others


@cache
def expected(name: str) -> str:
    """The right answer to what `decisions` calls by this name."""
    what, _, _ = name.partition(",")
    if what in CASES:
        return truth(make_query(*CASES[what]))
    return {"0.99": "robust", "1.01": "not_robust", "radius": "tight"}[what.rpartition(" ")[2]]


@cache
def exact_radii() -> str:
    return json.dumps({norm: radius_case(number, norm).exact for norm, number in RADII.items()})


@pytest.mark.slow
def test_the_simplest_machine_decides_alike() -> None:
    environment = {**os.environ, **MACHINE}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    environment["OMP_WAIT_POLICY"] = "PASSIVE"  # threads without work leave the cores to others
    command = [sys.executable, "-m", "tests.engine.decisions"]
    run = subprocess.run(
        [*command, exact_radii(), "0", str(PARTS)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(run.stdout)
    assert said == {name: expected(name) for name in said} and len(said) > 12


def shaken(query: Query, seed: int) -> Query:
    """The same question with numbers that may be off in their last bits, and in another order."""
    source = generator(seed)
    network, maps = query.network, []
    orders = [torch.arange(network.inputs)]
    orders += [torch.randperm(width, generator=source) for width in network.widths]
    rows = torch.randperm(network.outputs, generator=source)
    output = network.output
    assert isinstance(output, Combination)
    inner = output.inner
    for k, affine in enumerate((*network.layers, inner)):
        assert isinstance(affine, Dense)
        mine = orders[k + 1] if k < len(network.layers) else torch.arange(affine.outputs)
        pairs = zip(affine.sources, affine.weights, strict=True)
        weights = tuple(nudged(w[mine][:, orders[s]], source) for s, w in pairs)
        maps.append(Dense(affine.sources, weights, nudged(affine.bias[mine], source)))
    moved = Combination(
        maps[-1], nudged(output.rows[rows], source), nudged(output.offset[rows], source)
    )
    return replace(
        query,
        network=replace(network, layers=tuple(maps[:-1]), output=moved),
        domain=moved_domain(query.domain, source),
        disjunct=query.disjunct[rows],
        strict=query.strict[rows],
    )


def nudged(numbers: Tensor, source: torch.Generator) -> Tensor:
    """Each number as it is, or the next one above or below; a 0 stays one."""
    way = torch.randint(-1, 2, numbers.shape, generator=source).double()
    moved = numbers.nextafter(torch.where(way == 0, numbers, way * torch.inf))
    return torch.where(numbers == 0, numbers, moved)


def moved_domain(domain: Domain, source: torch.Generator) -> Domain:
    if isinstance(domain, Box):
        thin = domain.lower == domain.upper
        lower = nudged(domain.lower, source)
        return Box(lower, torch.where(thin, lower, nudged(domain.upper, source)))
    if isinstance(domain, (L2Ball, L1Ball)):
        return replace(domain, center=nudged(domain.center, source))
    assert isinstance(domain, Clipped)
    box = domain.clip
    return replace(domain, clip=Box(nudged(box.lower, source), nudged(box.upper, source)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOMAINS)
def test_shaken_in_the_last_bits_a_question_is_decided_alike(kind: str) -> None:
    for number, (case, which) in enumerate(CASES.items()):
        if which[0] != kind:
            continue
        query = make_query(*which)
        engines = [name for name in ENGINES if suits(name, query)]
        right = truth(query)
        assert right != "unclear"
        for variant in range(number % 3, VARIANTS, 3):
            name = engines[variant % len(engines)]
            outcome = ENGINES[name](shaken(query, variant))
            assert outcome.status == right, (case, variant, name, outcome.reason)
