"""The mutations of defects and of errors that are carried from map to map."""

from __future__ import annotations

from mutation import Change, tested

_LOSSES = "base/test_rounding_losses"
_FORWARD = tested("bounds/forward.py", _LOSSES)
_INTERVAL = tested("bounds/backward.py", _LOSSES)
_FORMS = tested(
    "regions/forms.py", _LOSSES, "regions/test_forms::the_defect_of_a_map_is_part_of_the_error"
)
_WALK = tested("regions/triangular.py", _LOSSES)
_MAPS = tested("network/model.py", _LOSSES)
_PRODUCT = tested(
    "network/activations/product.py",
    "network/test_activations::planes_hold_at_random_places_of_the_box",
)
_TURNED = tested(
    "transform/inputs.py",
    "transform/test_inputs::a_turned_map_is_within_its_defect_of_the_map_that_is_meant",
    "transform/test_inputs::what_a_basis_misses_is_part_of_the_defect",
    "transform/test_inputs::weights_that_cancel_at_the_centre_once_they_are_cast_are_part_of_the_defect",
    "transform/test_inputs::a_ball_in_single_precision_stays_large_enough",
)
_FIXED = tested(
    "transform/inputs.py",
    "transform/test_inputs::a_weight_that_is_lost_counts_times_the_value_of_a_fixed_input",
)

DEFECTS: tuple[Change, ...] = (
    (
        "defect: of a map that forms go through",
        _FORWARD,
        "error = error + size_of.grow(4) * layer.defect",
        "pass",
    ),
    (
        "error: of forms, in their range",
        _FORWARD,
        "size_of.grow(4) * forms.error + 8 * size_of.lost",
        "8 * size_of.lost",
    ),
    (
        "error: of forms, through ReLUs",
        _FORWARD,
        "size_of.grow(4) * forms.error * steepest + size_of.share(8) * size",
        "size_of.share(8) * size",
    ),
    (
        "error: of forms, through maps",
        _FORWARD,
        "layer.spread([form.error for form in read]) *",
        "0 * layer.spread([form.error for form in read]) *",
    ),
    (
        "defect: of a map that intervals go through",
        _INTERVAL,
        "error = error + size_of.grow(8) * affine.defect",
        "pass",
    ),
    (
        "error: half of an interval is not flushed",
        _INTERVAL,
        "(uppers[s] - lowers[s]) / 2 + lost for",
        "(uppers[s] - lowers[s]) / 2 for",
    ),
    ("defect: of a region's map", _FORMS, "error = error + affine.defect", "pass"),
    (
        "error: of a region's forms, through maps",
        _FORMS,
        "error = affine.spread([errors",
        "error = 0 * affine.spread([errors",
    ),
    (
        "error: of a region's forms, times a lost factor",
        _FORMS,
        "sizes[s] + errors[s] for s in affine.sources]).forward",
        "sizes[s] for s in affine.sources]).forward",
    ),
    ("defect: of a map in the walk", _WALK, "error + affine.defect", "error"),
    (
        "error: of the walk, through maps",
        _WALK,
        "error = affine.spread([errors",
        "error = 0 * affine.spread([errors",
    ),
    (
        "error: of the walk, times a lost factor",
        _WALK,
        "affine.lost([sizes[s] + errors[s] for s in affine.sources])",
        "affine.lost(read)",
    ),
    (
        "error: of the walk, that is no number",
        _WALK,
        ".nan_to_num(torch.inf, torch.inf, torch.inf)",
        ".nan_to_num(0.0, torch.inf, torch.inf)",
    ),
    (
        "defect: of a map, times a lost entry of a row",
        _MAPS,
        "sizes if defect is None else sizes + defect",
        "sizes",
    ),
    ("error: planes of products are exact", _PRODUCT, " - 8 * EPS * size - 8 * LOST", ""),
    ("defect: of turned inputs", _TURNED, "defect = left * size + size", "defect = size"),
    (
        "defect: only what a basis misses",
        _TURNED,
        "(missing + share * length + small)",
        "missing",
    ),
    (
        "defect: not what a basis misses",
        _TURNED,
        "(missing + share * length + small)",
        "(share * length + small)",
    ),
    (
        "defect: the values at a centre are not rounded",
        _TURNED,
        " + size_of.share(2) * bias.abs() + size_of.lost * small",
        "",
    ),
    ("defect: forgotten with old inputs", _TURNED, "defect=defect + before", "defect=defect"),
    ("error: a basis stretches nothing", _TURNED, "ball.radius * self.stretch", "ball.radius"),
    ("defect: fixed inputs lose nothing", _FIXED, "* terms + size_of.lost * small", "* terms"),
)
