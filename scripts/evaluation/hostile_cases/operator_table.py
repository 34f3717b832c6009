"""Random attributes of operators; onnxruntime decides whether they are valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.network_models import Builder

Sizes = tuple[int, ...]
Random = np.random.Generator
Drawn = tuple[Sizes, Callable[[Builder], str]]
HUGE = float(np.finfo(np.float32).max)


def _shape(random: Random, channels: int, axes: int) -> Sizes:
    return (1, channels, *map(int, random.integers(3, 7, size=axes)))


def _weights(random: Random, *shape: int) -> Any:
    return np.round(random.uniform(-2, 2, size=shape) * 4) / 4


def _ints(random: Random, low: int, high: int, count: int) -> list[int]:
    return [int(v) for v in random.integers(low, high, size=count)]


def _window(random: Random, axes: int, *, dilated: bool = True) -> dict[str, Any]:
    """Strides, dilations and padding, each possibly left out."""
    result: dict[str, Any] = {}
    if random.random() < 0.7:
        result["strides"] = _ints(random, 1, 4, axes)
    if dilated and random.random() < 0.4:
        result["dilations"] = _ints(random, 1, 3, axes)
    padding = random.choice(["", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    if padding == "pads":
        result["pads"] = _ints(random, 0, 3, 2 * axes)
    elif padding:
        result["auto_pad"] = str(padding)
    return result


def _conv(random: Random, opset: int) -> Drawn:
    axes, group = int(random.choice([1, 2, 2])), int(random.choice([1, 1, 2]))
    shape, kernel = _shape(random, 2 * group, axes), _ints(random, 1, 4, axes)
    attributes = _window(random, axes) | ({"group": group} if group > 1 else {})
    if random.random() < 0.5:
        attributes["kernel_shape"] = kernel
    weight, bias = _weights(random, 2 * group, 2, *kernel), _weights(random, 2 * group)
    return shape, lambda b: b.op("Conv", "x", b.const(weight), b.const(bias), **attributes)


def _conv_transpose(random: Random, opset: int) -> Drawn:
    axes, group = int(random.choice([1, 2, 2])), int(random.choice([1, 1, 2]))
    shape, kernel = _shape(random, 2 * group, axes), _ints(random, 1, 4, axes)
    attributes = _window(random, axes) | ({"group": group} if group > 1 else {})
    if random.random() < 0.4:
        attributes["output_padding"] = _ints(random, 0, 2, axes)
    if random.random() < 0.3:
        attributes["output_shape"] = _ints(random, 4, 12, axes)
    if random.random() < 0.5:
        attributes["kernel_shape"] = kernel
    weight, bias = _weights(random, 2 * group, 2, *kernel), _weights(random, 2 * group)
    return shape, lambda b: b.op("ConvTranspose", "x", b.const(weight), b.const(bias), **attributes)


def _pool(kind: str) -> Callable[[Random, int], Drawn]:
    def draw(random: Random, opset: int) -> Drawn:
        axes = int(random.choice([1, 2, 2, 3]))
        attributes = _window(random, axes, dilated=kind == "MaxPool" or opset >= 19)
        attributes["kernel_shape"] = _ints(random, 1, 4, axes)
        if random.random() < 0.4:
            attributes["ceil_mode"] = 1
        if kind == "AveragePool" and random.random() < 0.5:
            attributes["count_include_pad"] = 1
        if kind == "MaxPool" and random.random() < 0.2:
            attributes["storage_order"] = int(random.integers(2))
        return _shape(random, 2, axes), lambda b: b.op(kind, "x", **attributes)

    return draw


def _resize(random: Random, opset: int) -> Drawn:
    axes = int(random.choice([1, 2]))
    shape = _shape(random, 2, axes)
    attributes: dict[str, Any] = {"mode": str(random.choice(["nearest", "linear", "cubic"]))}
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
             "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"]  # fmt: skip
    if random.random() < 0.8:
        attributes["coordinate_transformation_mode"] = str(random.choice(modes))
    if random.random() < 0.6:
        roundings = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes["nearest_mode"] = str(random.choice(roundings))
    if random.random() < 0.2:
        attributes["exclude_outside"] = 1
    if random.random() < 0.2:
        attributes["antialias"] = 1
    if random.random() < 0.2:
        attributes["cubic_coeff_a"] = -0.5
    if random.random() < 0.3:
        attributes["extrapolation_value"] = 1.5
    sizes = [*shape[:2], *_ints(random, 1, 10, axes)]
    scales = [1.0, 1.0, *map(float, random.choice([0.5, 0.6, 1, 1.3, 1.5, 2, 2.5], size=axes))]
    roi = np.concatenate([np.zeros(2), random.uniform(0, 0.4, axes), np.ones(2),
                          random.uniform(0.5, 1.2, axes)])  # fmt: skip
    if random.random() < 0.3:
        attributes["keep_aspect_ratio_policy"] = str(random.choice(["not_larger", "not_smaller"]))
    by_size = random.random() < 0.5

    def build(b: Builder) -> str:
        if opset < 10:
            return str(b.op("Upsample", "x", b.const(scales), mode=attributes["mode"]))
        if opset == 10:
            return str(b.op("Resize", "x", b.const(scales), mode=attributes["mode"]))
        last = ("", b.ints(*sizes)) if by_size else (b.const(scales),)
        return str(b.op("Resize", "x", b.const(roi), *last, **attributes))

    return shape, build


def _clip(random: Random, opset: int) -> Drawn:
    ends = [-HUGE, -3.3e38, -1e38, -1.0, -0.25, 0.0, 0.25, 1.0, 1e38, 3.3e38, HUGE]
    low, high = (float(v) for v in random.choice(ends, size=2))
    given = random.random(2) < 0.8

    def build(b: Builder) -> str:
        if opset < 11:
            chosen: dict[str, Any] = {"min": low} if given[0] else {}
            return str(b.op("Clip", "x", **chosen | ({"max": high} if given[1] else {})))
        operands = [b.const(low) if given[0] else "", b.const(high) if given[1] else ""]
        return str(b.op("Clip", "x", *operands))

    return (1, 4), build


def _pad(random: Random, opset: int) -> Drawn:
    axes = int(random.choice([1, 2]))
    shape = _shape(random, 2, axes)
    mode = str(random.choice(["constant", "reflect", "edge", "wrap"]))
    pads = [0, *_ints(random, -1, 2, 1), *_ints(random, -2, 3, axes)]
    pads += [0, *_ints(random, -1, 2, 1), *_ints(random, -2, 3, axes)]
    value = float(random.choice([0.0, 0.5, -1.25]))

    def build(b: Builder) -> str:
        if opset < 11:
            return str(b.op("Pad", "x", pads=pads, mode=mode, value=value))
        return str(b.op("Pad", "x", b.ints(*pads), b.const(value), mode=mode))

    return shape, build


def _slice(random: Random, opset: int) -> Drawn:
    shape = _shape(random, 3, 2)
    starts, ends = _ints(random, -8, 8, 2), _ints(random, -8, 8, 2)
    axes = [int(a) for a in random.permutation([1, 2, 3, -1, -2])[:2]]
    steps = [int(random.choice([-3, -2, -1, 1, 2])) for _ in range(2)]

    def build(b: Builder) -> str:
        if opset < 10:
            return str(b.op("Slice", "x", starts=starts, ends=ends, axes=axes))
        return str(b.op("Slice", "x", *(b.ints(*part) for part in (starts, ends, axes, steps))))

    return shape, build


def _reduce(random: Random, opset: int) -> Drawn:
    kind = str(random.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1"]))
    axes = [int(a) for a in random.permutation([1, 2, 3, -1])[: int(random.integers(0, 3))]]
    keep = {"keepdims": int(random.integers(2))} if random.random() < 0.7 else {}
    empty = {"noop_with_empty_axes": int(random.integers(2))} if random.random() < 0.5 else {}
    operand = opset >= (13 if kind == "ReduceSum" else 18)

    def build(b: Builder) -> str:
        if operand:
            return str(b.op(kind, "x", *([b.ints(*axes)] if axes else []), **keep, **empty))
        named: dict[str, Any] = {"axes": axes} if axes else {}
        return str(b.op(kind, "x", **named, **keep))

    return _shape(random, 2, 2), build


def _normalise(random: Random, opset: int) -> Drawn:
    parts = [_weights(random, 2) for _ in range(3)]
    variance = random.uniform(0.5, 2, size=2)
    attributes = {"epsilon": float(random.choice([1e-5, 0.1]))}
    if opset >= 14 and random.random() < 0.3:
        attributes["training_mode"] = int(random.integers(2))
    operands = [*parts, variance]
    return _shape(random, 2, 2), lambda b: b.op(
        "BatchNormalization", "x", *(b.const(v) for v in operands), **attributes
    )


def _piecewise(random: Random, opset: int) -> Drawn:
    """Activations, and discontinuous functions such as rounding."""
    kinds: dict[str, dict[str, Any]] = {
        "LeakyRelu": {"alpha": float(random.choice([-0.5, 0.0, 0.1, 1.0, 1.5]))},
        "HardSigmoid": {"alpha": float(random.choice([-0.5, 0.2, 3.0])), "beta": 0.25},
        "ThresholdedRelu": {"alpha": float(random.choice([-1.0, 0.5, 1.0]))},
        "HardSwish": {},
        "Abs": {},
        "Sign": {},
        "Floor": {},
        "Ceil": {},
        "Round": {},
        "Shrink": {"lambd": 0.5, "bias": float(random.choice([0.0, 0.25]))},
        "Hardmax": {},
        "Softsign": {},
    }
    kind = str(random.choice(list(kinds)))
    return (1, 6), lambda b: b.op(kind, "x", **kinds[kind])


def _by_chance(random: Random, opset: int) -> Drawn:
    """An operator with random output, added to the input or applied to it."""
    kind = str(random.choice(["RandomNormal", "RandomUniform", "RandomNormalLike",
                              "RandomUniformLike", "Bernoulli", "Dropout"]))  # fmt: skip

    def build(b: Builder) -> str:
        if kind == "Dropout":
            return str(b.op("Dropout", "x", b.const(0.5), b.const(True, np.bool_)))
        if kind == "Bernoulli":
            return str(b.op("Add", "x", b.op("Bernoulli", b.const([[0.5] * 4]))))
        if kind.endswith("Like"):
            return str(b.op("Add", "x", b.op(kind, "x")))
        return str(b.op("Add", "x", b.op(kind, shape=[1, 4])))

    return (1, 4), build


OPERATORS: dict[str, Callable[[Random, int], Drawn]] = {
    "conv": _conv,
    "conv transpose": _conv_transpose,
    "max pool": _pool("MaxPool"),
    "average pool": _pool("AveragePool"),
    "lp pool": _pool("LpPool"),
    "resize": _resize,
    "clip": _clip,
    "pad": _pad,
    "slice": _slice,
    "reduce": _reduce,
    "batch norm": _normalise,
    "piecewise": _piecewise,
    "by chance": _by_chance,
}
