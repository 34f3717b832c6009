"""Convolutions, pools, resizing and padding with random attributes."""

from __future__ import annotations

from typing import Any

from tests.helpers.operator_draw import Draw


def _window(d: Draw, rank: int, kernel: list[int], *, dilated: bool = True) -> dict[str, Any]:
    """Strides, dilations and padding, each of them drawn, or left out."""
    auto = d.one(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    pads = d.one(
        None, d.ints(2 * rank, 0, 1), d.ints(2 * rank, 0, 1, 2), d.ints(1, 0, 1) * 2 * rank
    )
    return {
        "auto_pad": auto,
        "pads": pads if auto in (None, "NOTSET") else None,
        "strides": d.one(None, d.ints(rank, 1, 2, 3)),
        "dilations": d.one(None, d.ints(rank, 1, 2, 3)) if dilated else None,
        "kernel_shape": kernel,
    }


def conv(d: Draw) -> Any:
    rank, group = d.one(1, 2, 2, 3), d.one(1, 1, 2, 4)
    d.takes(1, 4, *d.ints(rank, 3, 5, 6, 8))
    kernel = d.ints(rank, 1, 2, 3)
    filters = group * d.one(1, 2)
    operands = [d.x, d.weights(filters, 4 // group, *kernel), *d.one([], [d.weights(filters)])]
    given = _window(d, rank, kernel) | {"group": d.one(group, group if group > 1 else None)}
    return d.op("Conv", *operands, **given | {"kernel_shape": d.one(kernel, None)})


def conv_transpose(d: Draw) -> Any:
    rank, group = d.one(1, 2, 2, 3), d.one(1, 1, 2)
    d.takes(1, 4, *d.ints(rank, 2, 3, 5))
    kernel = d.ints(rank, 1, 2, 3)
    filters = d.one(1, 2)
    operands = [d.x, d.weights(4, filters, *kernel), *d.one([], [d.weights(group * filters)])]
    given = _window(d, rank, kernel) | {
        "group": group,
        "output_padding": d.one(None, None, d.ints(rank, 0, 1), d.ints(rank, 0, 1, 2)),
        "output_shape": d.one(None, None, None, d.ints(rank, 5, 6, 8, 9)),
    }
    return d.op("ConvTranspose", *operands, **given)


def _pool(d: Draw, kind: str, since: int) -> tuple[int, dict[str, Any]]:
    rank = d.one(1, 2, 2, 3)
    d.takes(1, 2, *d.ints(rank, 3, 5, 6, 8))
    given = _window(d, rank, d.ints(rank, 1, 2, 3), dilated=d.opset >= since)
    return rank, given | {"ceil_mode": d.one(None, 0, 1) if d.opset >= 10 else None}


def max_pool(d: Draw) -> Any:
    _, given = _pool(d, "MaxPool", 10)
    return d.op("MaxPool", d.x, **given | {"storage_order": d.one(None, 0, 1)})


def average_pool(d: Draw) -> Any:
    _, given = _pool(d, "AveragePool", 19)
    return d.op("AveragePool", d.x, **given | {"count_include_pad": d.one(None, 0, 1)})


def global_pool(d: Draw) -> Any:
    d.takes(1, 2, *d.ints(d.one(1, 2, 3), 1, 2, 4))
    return d.op(d.one("GlobalAveragePool", "GlobalMaxPool"), d.x)


def resize(d: Draw) -> Any:
    rank = d.one(1, 2, 2, 3)
    d.takes(1, 2, *d.ints(rank, 1, 3, 4, 5))
    mode = d.one("nearest", "nearest", "linear", "linear", "cubic")
    if d.opset < 10:
        scales = d.builder.const([1, 1, *d.ints(rank, 1, 2, 3)])
        if d.opset < 9:
            return d.op(
                "Upsample", d.x, mode=mode, scales=[1.0, 1.0, *map(float, d.ints(rank, 1, 2))]
            )
        return d.op("Upsample", d.x, scales, mode=mode)
    part = d.one(False, True) and d.opset >= 18
    shape = d.shape[2:] if part else d.shape
    factors = [*([] if part else [1, 1]), *(d.one(0.5, 1, 1.5, 2, 2.6, 3) for _ in range(rank))]
    sizes = [max(1, int(n * f)) for n, f in zip(shape, factors, strict=True)]
    scales = d.builder.const(factors)
    if d.opset < 11:
        return d.op("Resize", d.x, scales, mode=mode)
    modes = [
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
    ]
    modes += ["tf_half_pixel_for_nn"] if d.opset < 13 else []
    modes += ["half_pixel_symmetric"] if d.opset >= 19 else []
    transform = d.one(*modes)
    given: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": d.one(
            transform, None if transform == "half_pixel" else transform
        ),
        "exclude_outside": d.one(None, 0, 1),
        "extrapolation_value": d.one(None, 0.0, 3.0),
        "nearest_mode": d.one(None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    }
    by_size = d.one(True, False)
    if d.opset >= 18:
        given["antialias"] = d.one(None, 0, 1)
        given["axes"] = d.one(list(range(2, rank + 2)), list(range(-rank, 0))) if part else None
        policies = (None, "stretch", "not_larger", "not_smaller")
        given["keep_aspect_ratio_policy"] = d.one(*policies) if by_size else None
    crops = transform == "tf_crop_and_resize"
    low = [0.0] * (len(shape) - rank) + [d.one(0.0, 0.2) for _ in range(rank)]
    high = [1.0] * (len(shape) - rank) + [d.one(1.0, 0.8, 1.3) for _ in range(rank)]
    roi = d.builder.const([*low, *high]) if crops else d.builder.const([])
    nothing = d.builder.const([])
    tail = [nothing, d.builder.ints(*sizes)] if by_size else [scales]
    return d.op("Resize", d.x, roi, *tail, **given)


def pad(d: Draw) -> Any:
    rank = d.one(2, 3, 4)
    d.takes(1, *d.ints(rank - 1, 4, 5))
    mode = d.one(None, "constant", "reflect", "edge", *(["wrap"] if d.opset >= 19 else []))
    value = d.one(None, 0.0, 3.0)
    if d.opset < 11:
        pads = [0, *d.ints(rank - 1, 0, 1, 2), 0, *d.ints(rank - 1, 0, 1, -1)]
        return d.op("Pad", d.x, mode=mode, pads=pads, value=value)
    axes = [axis for axis in range(1, rank) if d.one(True, False)]
    some = d.opset >= 18 and bool(axes) and d.one(True, False)
    count = len(axes) if some else rank
    before, after = d.ints(count, 0, 1, 2, -1), d.ints(count, 0, 1, 2, -1)
    operands = [
        d.x,
        d.builder.ints(*before, *after),
        "" if value is None else d.builder.const(value),
    ]
    if some:
        operands.append(d.builder.ints(*(d.one(axis, axis - rank) for axis in axes)))
    return d.op("Pad", *operands, mode=mode)
