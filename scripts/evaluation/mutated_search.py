"""Mutations of the searches, of the methods that settle regions, and of the attacks."""

from __future__ import annotations

from mutation import Change, tested

_NEAREST = tested("attack/boundary.py", "attack/test_minimum_norm")
_DECOUPLED = tested(
    "attack/decoupled.py",
    "attack/test_decoupled::linear_networks_have_their_exact_distances",
    "attack/test_decoupled::a_start_comes_to_the_boundary_from_both_sides",
    "attack/test_minimum_norm",
)
_CLIPPING = tested(
    "search/clipping.py",
    "search/test_clipping::one_row_cuts_each_input_where_the_others_cannot_make_up_for_it",
    "search/test_clipping::all_rows_of_a_conjunction_cut_and_only_what_no_disjunct_needs_is_cut",
    "search/test_clipping::limits_are_rounded_outwards",
)
_BOX_NEURONS = tested("search/box_neurons.py", "search/test_box_neurons")
_CONJUNCTIONS = tested(
    "search/conjunctions.py",
    "search/test_conjunctions::rows_that_touch_in_one_point_are_not_closed",
    "search/test_conjunctions::the_rounding_of_the_rows_is_taken_off_their_sum",
    "search/test_conjunctions::each_disjunct_is_weighed_by_itself",
)
_VALUE = tested(
    "search/value.py",
    "search/test_hidden_neurons::tighter_bounds_contain_the_exact_range",
    "search/test_hidden_neurons::what_overflows_makes_no_neuron_stable",
)
_REFINE = tested(
    "bounds/hidden.py",
    "search/test_hidden_neurons::tighter_bounds_contain_the_exact_range",
    "search/test_hidden_neurons::what_overflows_makes_no_neuron_stable",
)
_BUNDLES = tested(
    "search/bundles.py",
    "search/test_bundles::the_halves_of_a_bundle_cover_it",
    "search/test_bundles::the_neuron_that_is_split_is_open_and_unstable",
    "search/test_bundles::a_neuron_that_a_sample_shows_with_both_signs_is_still_open",
)
_BEST_FIRST = tested(
    "search/best_first.py",
    "search/test_neurons::a_counterexample_in_a_sliver_is_never_missed",
    "search/test_neurons::verdicts_are_those_of_an_exact_oracle",
)
_NEURONS = tested(
    "search/neurons.py",
    "search/test_neurons::rows_that_are_0_everywhere_are_met_only_where_none_is_strict",
    "search/test_neurons::a_conjunction_met_with_equality_is_never_proved",
    "search/test_neurons::a_counterexample_that_is_refused_is_never_proved_away",
)
_SLIVERS = (
    "search/test_inputs::a_counterexample_in_a_sliver_is_never_missed",
    "search/test_inputs::a_tie_is_never_proved_and_ends",
    "search/test_inputs::boxes_that_single_precision_cannot_tell_apart_are_never_proved_wrongly",
)
_INPUTS, _HALVES = (tested(f"search/{file}.py", *_SLIVERS) for file in ("inputs", "boxes"))
_CREW = tested("engine/parallel/crew.py", "engine/test_crew", "engine/test_crew_shares")
_WORKER = tested("engine/parallel/worker.py", "engine/test_crew")
_SPREAD = tested("engine/parallel/spread.py", "engine/test_led_work")
_SHARED_NEURONS = tested("search/neurons.py", "engine/test_crew")
_LEAVES = tested(
    "search/leaves.py", "search/test_leaves::a_region_is_not_closed_by_another_disjunct"
)
_REGION_HALFSPACES = tested(
    "regions/region_halfspaces.py",
    "search/test_leaves::a_region_is_settled_only_as_the_oracle_has_it",
    "search/test_leaves::with_an_lp_every_region_is_decided_as_the_oracle_has_it",
)
_HALFSPACES = tested("regions/halfspaces.py", "regions/test_halfspaces")
_OVERFLOW = tested(
    "regions/halfspaces.py",
    "engine/test_overflow::only_finite_positive_differences_are_proofs",
    "engine/test_overflow::a_constraint_that_overflows_takes_no_part_and_harms_no_other",
    "engine/test_overflow::sums_that_overflow_contradict_nothing",
)
_WALK = tested(
    "search/walk/walk.py", "engine/test_overflow::a_row_that_is_no_number_is_not_passed_over"
)
_CLIPPED = tested("domain/clipped.py", "domain/test_sets::no_point_goes_beyond_the_sharp_support")
_LP = tested(
    "regions/lp.py",
    "regions/test_lp::a_solver_that_lies_closes_nothing",
    "regions/test_lp::a_tie_is_never_closed",
)
_FRONTIER = tested("search/frontier.py", "search/test_frontier")
_QUERY = tested("query.py", "test_query::a_disjunct_is_closed_where_one_of_its_rows_cannot_be_met")

SEARCH: tuple[Change, ...] = (
    (
        "clipped on the wrong side",
        _CLIPPING,
        "torch.where(weight > 0, center ⟦+ → -⟧ limit, nothing)",
    ),
    ("clipped without rounding", _CLIPPING, "reach - radius⟦ + spare → ⟧"),
    (
        "clipped to all disjuncts at once",
        _CLIPPING,
        "low = torch.where⟦(gone, torch.inf, low).amin → (gone, -torch.inf, low).amax⟧(1)",
    ),
    ("rounding of weighed rows dropped", _CONJUNCTIONS, "⟦(error + size_of.underflow) → 0⟧"),
    (
        "weights of two rows that are not the best",
        tested(
            "search/conjunctions.py",
            "search/test_conjunctions::two_rows_are_weighed_as_well_as_can_be",
        ),
        "⟦(high.rows[:, 0] - low.rows[:, 0]) → high.rows[:, 0]⟧ / (rise - fall)",
    ),
    (
        "rows that only rounding keeps open are forgotten",
        tested(
            "search/conjunctions.py",
            "search/test_conjunctions::rows_that_only_rounding_keeps_from_closing_are_told",
        ),
        "⟦almost[which, disjunct] |= best.nominal > 0 → pass⟧",
    ),
    ("rows of other disjuncts weighed too", _CONJUNCTIONS, "rows[⟦ → 0 * ⟧number])"),
    (
        "a sum of 0 closes a conjunction",
        _CONJUNCTIONS,
        "= ⟦positive(best.least) → best.least > -1e-6⟧",
    ),
    (
        "the greatest bound of a neuron's bundles",
        _VALUE,
        'waiting["disjunct"], waiting["key"], "⟦amin → amax⟧"',
    ),
    (
        "an overflow as a sharpened bound",
        _VALUE,
        "level = ⟦below(least) → torch.where(least.isfinite(), least, torch.inf)⟧",
    ),
    ("the side of a refined bound", _REFINE, "neurons], ⟦- → ⟧high)"),
    ("one half twice", _BUNDLES, "for sign in (⟦-1 → 1⟧, 1)]"),
    (
        "a neuron taken for closed",
        _BUNDLES,
        "crossing = torch.cat([none, *masks], -1)⟦ →  & (torch.arange(none.shape[0]) "
        "> 0)[:, None]⟧",
    ),
    ("a bundle dropped", _BEST_FIRST, "⟦ → at = at[1:]; ⟧kept = bounded.bundles.at(at)"),
    ("almost 0 closes a bundle", _NEURONS, "empty | positive(least⟦ →  + 1e-6⟧)"),
    ("regions left open are forgotten", _NEURONS, "⟦, unsettled=decided.unsettled → ⟧"),
    ("an upper half lost", _HALVES, "middle), parts.upper⟦ → .scatter(-1, index, middle)⟧])"),
    ("boxes too small to split are forgotten", _INPUTS, '⟦self.statistics["stuck"] +=  → ⟧int'),
    (
        "what a dead process had is lost",
        _CREW,
        "⟦self._search.frontier.put(unpacked(task.records)) → pass⟧",
    ),
    ("what is given away is lost", _CREW, "⟦self._search.frontier.put(given) → pass⟧"),
    ("bounds of other neurons are believed", _SPREAD, "⟦not _equal(asked, pieces) or  → ⟧"),
    (
        "what a process keeps is forgotten once others have their part",
        _WORKER,
        "packed(⟦frontier.everything() → {}⟧) if count",
    ),
    (
        "regions that another process left open are forgotten",
        _SHARED_NEURONS,
        "⟦goal.counts.update(counts) → pass⟧",
    ),
    (
        "a region closed by another disjunct",
        _LEAVES,
        ".⟦gather(-1, disjunct.unsqueeze(-1)).squeeze → any⟧(-1)",
    ),
    (
        "a region on the other side of its neurons",
        _REGION_HALFSPACES,
        "torch.where(signs > 0, ⟦-1,  → 1, -⟧1)",
    ),
    ("negative multipliers as evidence", _HALFSPACES, "weights = multipliers⟦.clamp(min=0) → ⟧"),
    ("rounding of the evidence dropped", _HALFSPACES, "⟦ - sum_error(domain, spaces, weights) → ⟧"),
    (
        "evidence that a tie is empty",
        _HALFSPACES,
        "positive(⟦ → 1e-6 + ⟧nominal(domain, spaces, weights)",
    ),
    ("the box's part of a clipped ball dropped", _CLIPPED, "⟦ + along(rest, room) → ⟧"),
    ("the solver's word for evidence", _LP, "return mine⟦ if proved else None → ⟧"),
    ("a record lost", _FRONTIER, "self._size = ⟦kept → max(kept - 1, 0)⟧"),
    ("strictness swapped", _QUERY, "or_zero=⟦ → ~⟧self.strict)"),
    ("overflow taken for a distance", _OVERFLOW, "⟦positive(gap) & reach.isfinite() → gap > 0⟧"),
    (
        "a row that is no number passed over",
        _WALK,
        "⟦~positive(forms.values[count:] - reach[count:]) → (forms.values[count:] <= "
        "reach[count:])⟧",
    ),
    ("points of the same class", _NEAREST, "(⟦outputs.amin(-1) <= 0) & ( → ⟧target"),
    ("a ball that does not shrink", _DECOUPLED, "torch.minimum(radius * (1 ⟦- → +⟧ change), best)"),
    (
        "the norm itself for its dual",
        _DECOUPLED,
        '"linf": ⟦1.0, "l1": math.inf → math.inf, "l1": 1.0⟧',
    ),
    (
        "steps out of the clip box",
        _DECOUPLED,
        "x⟦ if target.clip is None else target.clip.project(x) → ⟧",
    ),
    (
        "open bundles after the last round count as closed",
        _BOX_NEURONS,
        "~failed⟦.index_fill(0, open_.owner, True) → ⟧",
    ),
    (
        "a box with too many open bundles counts as decided",
        _BOX_NEURONS,
        "failed⟦ | (_waiting(open_, len(failed), numbers.open) > numbers.open) → ⟧",
    ),
    (
        "a bundle with nothing to split is split on",
        _BOX_NEURONS,
        "torch.where(open_.neuron < 0, ⟦most + 1 → 0⟧, 1)",
    ),
    (
        "bundles of another box",
        _BOX_NEURONS,
        "Box(boxes.lower⟦[owner].to(dtype), boxes.upper[owner] → [owner * "
        "0].to(dtype), boxes.upper[owner * 0]⟧.to(dtype))",
    ),
    ("empty or open", _BOX_NEURONS, "rest = ~(⟦ → ~⟧empty | positive("),
)
