"""Properties of several networks, or relating inputs and outputs, as ones of a joint network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from fgp_vnn.api.cases import box_points, check_fit, check_shapes
from fgp_vnn.api.models import open_model
from fgp_vnn.api.written import onnx_of
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.network_list import named_networks
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.base.words import plural
from fgp_vnn.network import LoadedNetwork, load_network
from fgp_vnn.network.onnx.joined import JointRuntime, Part, joined
from fgp_vnn.property import Property, load_property
from fgp_vnn.property.model import Declared, Joint, Variable


def networks_of(model: Any) -> dict[str, Any] | None:
    """Models by name, from a mapping or from the competition's notation
    "[('f', 'a.onnx'), ('g', 'b.onnx')]"; None if `model` is a single unnamed model."""
    if isinstance(model, Mapping):
        return dict(model)
    listed = named_networks(str(model)) if isinstance(model, (str, Path)) else None
    return None if listed is None else {name: Path(path) for name, path in listed.items()}


def without_name(model: Any, prop: str | Path | Property | None) -> Any:
    """The bare model if exactly one named model is given and the property needs no joint network
    (it constrains single inputs, and outputs of one network); otherwise `model` unchanged."""
    given = networks_of(model)
    if given is None or len(given) != 1:
        return model
    given_property = load_property(prop, joint=True) if isinstance(prop, (str, Path)) else prop
    related = given_property is not None and given_property.joint is not None
    return model if related else next(iter(given.values()))


def open_joint(model: Any, prop: Property) -> LoadedNetwork:
    """The joint network of a property; its runtime runs the original program of each part."""
    if prop.joint is None:
        raise InputError("several networks are given, and the property is about one")
    given = networks_of(model)
    declared = prop.joint.networks or (_only(prop.joint, prop),)
    parts, runtimes, begin = [], [], 0
    for network in declared:
        count, outputs = (
            sum(prod(v.shape) for v in side) for side in (network.inputs, network.outputs)
        )
        places = prop.joint.places[begin : begin + count]
        begin += count
        source = _source(network, given, model, declared)
        loaded = open_model(source)
        sizes = loaded.network.inputs, loaded.network.outputs
        if sizes != (count, outputs):
            raise InputError(
                f"network {network.name} is declared with {plural(count, 'input')} and "
                f"{plural(outputs, 'output')}, and has {sizes[0]} and {sizes[1]}"
            )
        check_shapes(loaded, network.inputs, network.outputs)
        parts.append(Part(network.name, onnx_of(source), loaded.input_shape, outputs, places))
        runtimes.append((loaded.runtime, places))
    proto = joined(parts, prop.inputs, prop.joint.passed)
    whole = load_network(proto, points=box_points(prop))
    check_fit(whole, prop, "the joint network", "the property")
    return replace(whole, runtime=JointRuntime(runtimes, prop.joint.passed))


def declared_verdict(verdict: Verdict, prop: Property) -> Verdict:
    """The verdict, with its counterexample converted to the declared inputs and outputs."""
    found, joint = verdict.counterexample, prop.joint
    if found is None or joint is None:
        return verdict
    x, y = found.x[np.asarray(joint.places)], found.y[: prop.declared[1]]
    return replace(verdict, counterexample=Counterexample(x, y))


def _only(joint: Joint, prop: Property) -> Declared:
    """The declaration of the network of a property that does not name one (VNN-LIB 1.0)."""
    outputs = prop.outputs - len(joint.passed)
    x, y = Variable("X", "Real", (prop.inputs,)), Variable("Y", "Real", (outputs,))
    return Declared("", (x,), (y,))


def _source(
    network: Declared, given: Mapping[str, Any] | None, model: Any, declared: tuple[Declared, ...]
) -> Any:
    """The model of a declared network; a network declared equal to another may be omitted."""
    if given is None:
        if any(other.equal_to != declared[0].name for other in declared[1:]):
            names = ", ".join(other.name for other in declared)
            raise InputError(f"the property is about {len(declared)} networks: give {names}")
        return model
    if strange := given.keys() - {other.name for other in declared}:
        raise InputError(f"the property declares no network {min(strange)!r}")
    twin = next((other for other in declared if other.name == network.equal_to), None)
    if network.name not in given:
        if twin is None:
            raise InputError(f"network {network.name} is missing")
        return _source(twin, given, model, declared)
    found = given[network.name]
    if twin is not None:
        first = _source(twin, given, model, declared)
        same = found is first or onnx_of(found).graph == onnx_of(first).graph
        if not same:
            raise InputError(f"network {network.name} is declared equal to {twin.name} and is not")
    return found
