"""Mutations of defects and of errors propagated from map to map."""

from __future__ import annotations

from mutation import Change, tested

_LOSSES = "base/test_rounding_losses"
_FORWARD = tested("bounds/forward.py", _LOSSES)
_INTERVAL = tested("bounds/intervals.py", _LOSSES)
_CHARGE = tested("network/maps/affine.py", "network/test_charges")
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
_CHAINS = tested(
    "transform/chain_forms.py",
    "transform/test_chains::defects_of_all_maps_are_in_the_bounds_and_in_the_condensed_maps",
    "base/test_rounding::condensed_maps_and_bounds_hold_at_all_magnitudes",
)
_BALL = tested(
    "search/ball.py",
    "base/test_rounding_rows::half_spaces_about_another_centre_are_within_their_errors",
    "base/test_rounding_rows::distances_in_a_ball_and_parts_of_it_are_rounded_down",
)
_FIXED = tested(
    "transform/inputs.py",
    "transform/test_inputs::a_weight_that_is_lost_counts_times_the_value_of_a_fixed_input",
)

_UNREAD = tested(
    "transform/inputs.py",
    "transform/test_inputs::an_input_whose_weight_was_rounded_to_0_counts_as_read",
    "transform/test_inputs::a_network_without_unread_inputs_computes_the_same",
)
_SENT = tested("network/maps/operator.py", "network/test_moved_operators")
_PAIRS = tested("transform/opposites.py", "base/test_rounding_pairs")
_TWINS = tested("transform/opposites.py", "transform/test_opposites")
_CHAIN = tested("network/onnx/products.py", "network/test_products")
_CAST = tested("network/maps/affine.py", "network/test_charges")

DEFECTS: tuple[Change, ...] = (
    (
        "an operator that is sent with what was remembered of its graph",
        _SENT,
        "⟦{part.name: getattr(self, part.name) for part in fields(self)} → dict(self.__dict__)⟧",
    ),
    (
        "an operator that is sent without the kinds of its modules",
        _SENT,
        "mark_again(module, ⟦found → {}⟧)",
    ),
    (
        "unread inputs: a weight that was rounded to 0 counts as not read",
        _UNREAD,
        "for part in (_of_input(m, m.weights),⟦ _of_input(m, m.terms) → ⟧)",
    ),
    (
        "unread inputs: only the first map says what is read",
        _UNREAD,
        "for part in parts⟦ → [:2]⟧ if part is not None]).any(0)",
    ),
    (
        "defect: of a map that forms go through",
        _FORWARD,
        "⟦error = error + size_of.grow(4) * layer.defect → pass⟧",
    ),
    (
        "error: of forms, in their range",
        _FORWARD,
        "⟦size_of.grow(4) * forms.error +  → ⟧8 * size_of.underflow",
    ),
    (
        "error: of forms, through ReLUs",
        _FORWARD,
        "size_of.⟦grow(4) * forms.error * steepest + size_of. → ⟧share(8) * size",
    ),
    (
        "error: of forms, through maps",
        _FORWARD,
        "⟦ → 0 * ⟧layer.spread([form.error for form in read]) *",
    ),
    (
        "defect: of a map that intervals go through",
        _CHARGE,
        "⟦terms = terms + (1 + share) * self.defect → pass⟧",
    ),
    (
        "error: half of an interval is not flushed",
        _INTERVAL,
        "⟦(high - low) + 2 * size_of.underflow → high - low⟧ for",
    ),
    ("defect: of a region's map", _FORMS, "⟦error = error + affine.defect → pass⟧"),
    ("error: of a region's forms, through maps", _FORMS, "error = ⟦ → 0 * ⟧affine.spread([errors"),
    (
        "error: of a region's forms, times a lost factor",
        _FORMS,
        "sizes[s] ⟦+ errors[s]  → ⟧for s in affine.sources]",
    ),
    ("defect: of a map in the walk", _WALK, "error⟦ + affine.defect → ⟧"),
    ("error: of the walk, through maps", _WALK, "error = ⟦ → 0 * ⟧affine.spread([errors"),
    (
        "error: of the walk, times a lost factor",
        _WALK,
        "affine.underflows(⟦[sizes[s] + errors[s] for s in affine.sources] → read⟧)",
    ),
    (
        "error: of the walk, that is no number",
        _WALK,
        ".nan_to_num(⟦torch.inf → 0.0⟧, torch.inf, torch.inf)",
    ),
    (
        "defect: of a map, times a lost entry of a row",
        _MAPS,
        "sizes⟦ if defect is None else sizes + defect → ⟧",
    ),
    ("error: planes of products are exact", _PRODUCT, "⟦ - 8 * EPS * size - 8 * UNDERFLOW → ⟧"),
    ("defect: of turned inputs", _TURNED, "defect = ⟦left * size +  → ⟧size"),
    ("defect: only what a basis misses", _TURNED, "⟦(missing + share * length + small) → missing⟧"),
    ("defect: not what a basis misses", _TURNED, "(⟦missing +  → ⟧share * length + small)"),
    (
        "defect: the values at a centre are not rounded",
        _TURNED,
        "⟦ + size_of.share(2) * bias.abs() + size_of.underflow * small → ⟧",
    ),
    ("defect: forgotten with old inputs", _TURNED, "defect=defect⟦ + before → ⟧"),
    ("error: a basis stretches nothing", _TURNED, "ball.radius⟦ * self.stretch → ⟧"),
    ("defect: fixed inputs lose nothing", _FIXED, "* terms⟦ + size_of.underflow * small → ⟧"),
    (
        "defect: of a map of a chain",
        _CHAINS,
        "carried⟦ if affine.defect is None else carried + affine.defect → ⟧",
    ),
    ("defect: in the norm of errors", _CHAINS, "⟦local = local + affine.defect[on] → pass⟧"),
    ("error: the norm of errors shrinks", _CHAINS, "⟦ → 0.5 * ⟧_norm_bound(weight) * before.norm"),
    (
        "error: of unstable neurons that are replaced by lines",
        _CHAINS,
        "⟦error = error + size @ group.forms.error → pass⟧",
    ),
    (
        "error: of forms, in their intervals",
        _CHAINS,
        "slack + self⟦.unit.grow(8) * forms.error + self → ⟧",
    ),
    (
        "error: of neurons that are nearly on",
        _CHAINS,
        "⟦self.unit.grow(2) * (forms.error + slack) → forms.error⟧)",
    ),
    (
        "error: of half-spaces about another centre",
        _BALL,
        "size_of.grow(2) * spaces.errors⟦ + size_of.share(inputs + 6) * terms + small → ⟧",
    ),
    (
        "error: distances are rounded to the nearest",
        _BALL,
        "part * self.radius ⟦* (1 - unit(self.origin.dtype).share(4))  → ⟧-",
    ),
    (
        "error: parts of a ball are rounded to the nearest",
        _BALL,
        "⟦(self.radius * unit(self.origin.dtype).grow(4)) → self.radius⟧",
    ),
    (
        "error: a part that holds a distance is rounded to the nearest",
        _BALL,
        "/ self.radius⟦ * room → ⟧, 1.0)",
    ),
    (
        "term: defects of pairs rounded down",
        _PAIRS,
        "⟦size_of.grow(count + width + 8) *  → ⟧defect",
    ),
    (
        "term: defects of pairs do not underflow",
        _PAIRS,
        "⟦ + 4 * (count + width) * size_of.underflow → ⟧",
    ),
    (
        "term: weights of pairs are not flushed",
        _PAIRS,
        "⟦(size + size_of.underflow) → size⟧ @",
    ),
    ("term: single defects are not flushed", _PAIRS, "@ ⟦(each + size_of.underflow) → each⟧"),
    (
        "term: remainders do not round",
        _PAIRS,
        "⟦size_of.share(rounded) * terms[k + 1] +  → ⟧lost",
    ),
    ("term: remainders are not flushed", _PAIRS, "lost = ⟦2 * count * size_of.underflow → 0⟧"),
    (
        "term: sums over pairs are not rounded",
        _PAIRS,
        "layer.rounded⟦ + most_in_a_row(moved) + 4 → ⟧",
    ),
    ("term: rows that agree were not rounded", _TWINS, "⟦layer.rounded → 0⟧ + most_in_a_row"),
    (
        "term: what rows that agree have lost",
        _TWINS,
        "return kept if exact else ⟦2 * kept + moved @ terms[pairs.gone] → kept⟧",
    ),
    ("term: entries of pairs do not underflow", _PAIRS, "terms[s]⟦ + grain → ⟧"),
    ("term: biases of pairs do not underflow", _PAIRS, "offset⟦ + grain → ⟧"),
    ("term: sums of a chain are not rounded", _CHAIN, "count += ⟦reach + 2 → 0⟧"),
    (
        "term: a chain is a single sum",
        _CHAIN,
        "reach = ⟦min(factor.shape[1], reach * most_in_a_row(factor)) → 1⟧",
    ),
    ("term: casts to float32 do not round", _CAST, "(size⟦ + entry.abs() → ⟧)"),
    ("term: sums in float64 are exact", _CAST, "(⟦size → 0 * size⟧ + entry.abs())"),
    ("term: factors of entries are not flushed", _PAIRS, "(count + 1)⟦ * (1 + 2 * largest) → ⟧"),
)
