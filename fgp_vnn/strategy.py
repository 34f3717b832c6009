"""Every number that tunes the search.

None of them decides what counts as a proof: any strategy gives sound answers, some sooner than
others. A function takes the part that it needs. The brackets hold the processor time with the
number halved and doubled, relative to the default, as `scripts/benchmarks/strategy.py` measures it:
v is `verify` on bundled instances that need a search, a three of ACAS Xu, w `certify --engine
walk`, r `radius`, n `radius --engine walk`. These runs take a second; ratios within 0.15 of 1 are
noise, and no verdict changed. [-] marks a number not read in these runs, or not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Offer:
    """Which points a search hands to onnxruntime."""

    near: float = 1e-4  # greatest distance to the unsafe set, relative to g [v 1.04 1.01]
    most: int = 8  # points at a time, the clearest first [-]


@dataclass(frozen=True)
class Descent:
    """Projected gradient descent with momentum towards every disjunct at once."""

    restarts: int = 1  # starts per disjunct; the first is the centre [v 0.99 0.99]
    steps: int = 10  # [v 0.92 1.02]
    first_step: float = 0.5  # as a fraction of the domain's size [v 1.01 0.98]
    last_step: float = 0.02  # [v 1.11 1.10]
    momentum: float = 0.7  # [v 1.01 0.90]
    offer: Offer = Offer()
    single_from: int = 1000  # number of inputs from which float32 is faster [v 1.00 0.98]
    seed: int = 0  # of the random starts: the user's, not tuned


@dataclass(frozen=True)
class Projected:
    """The minimum-norm attack by projections onto decision boundaries (FAB)."""

    steps: int = 40  # [r 0.96 1.28]
    bias: float = 0.1  # greatest weight of the centre's projection in a step [r 0.89 1.04]
    overshoot: float = 1.05  # of a step towards the boundary [r 0.91 0.97]
    back: float = 0.95  # factor of the distance after the boundary was crossed [r 1.32 1.02]
    kept: int = 2  # points to polish [r 1.02 1.02]
    starts: int = 32  # at least, and four for each class [r 1.10 1.00]
    active: int = 6  # active-set rounds of a projection in a box [r 1.01 0.83]


@dataclass(frozen=True)
class Decoupled:
    """The minimum-norm attack that moves length and direction separately (DDN, FMN).

    A pair holds the values at the first and at the last step, with half a cosine in between.
    """

    steps: int = 20  # [r 1.04 1.06]
    length: tuple[float, float] = (1.0, 0.01)  # of a step, in radii [r 1.23 0.93]
    change: tuple[float, float] = (0.05, 0.001)  # of the radius, in radii [r 1.02 0.93]
    share: float = 0.5  # of the starts [r 1.10 1.06]
    kept: int = 4  # points to polish [r 1.02 1.01]


@dataclass(frozen=True)
class Polish:
    """Moving the points that minimum-norm attacks found nearer, along their boundaries."""

    count: int = 6  # points [r 1.09 1.09]
    rounds: int = 12  # [r 1.12 0.98]
    bisections: tuple[int, int] = (14, 40)  # along a ray: in a round, and at the end [r 1.02 1.01]
    shares: tuple[float, ...] = (1.0, 0.5, 0.2, 0.05)  # of the way along the boundary [r 1.02 0.98]
    offered: int = 3  # points handed to the network itself [r 1.00 1.05]


@dataclass(frozen=True)
class Blind:
    """The black-box attack on an unsupported network (measured: 12 of 12 traffic signs)."""

    descent: Descent = Descent(restarts=16, steps=40)
    share: float = 0.5  # of the time, if a network is supported but its gradients are 0 [-]
    rounds: int = 16  # of a descent and of random changes
    targets: int = 4  # disjuncts to attack, the nearest ones
    near: float = 0.3  # of the domain's size: half of the later starts are so near the best point
    changes: int = 40  # batches of random changes in a round
    shares: tuple[float, ...] = (0.5, 0.2, 0.1, 0.04, 0.01, 0.003)  # of inputs changed at once
    probes: int = 32  # finite differences per point where there is no gradient
    probe: float = 0.02  # length of these differences, as a fraction of the domain's size


@dataclass(frozen=True)
class Attack:
    """Attacks: the search for counterexamples by gradients."""

    quick: Descent = Descent(restarts=1, steps=6)  # before any bound
    long: Descent = Descent(restarts=8, steps=25)  # if plain bounds leave the query open
    # Largest shares of the time left: without them the first took 32 s of a limit of 30 (VGG16).
    shares: tuple[float, float] = (0.1, 0.3)
    # Between batches of boxes, from points of open ones. Counterexamples per second on ACAS Xu 1_2
    # | 5_3 prop_2 | 1_9 prop_7: with 8 steps 62 | 2 | 19, with 12 53 | 4 | 14, with 5 49 | 3 | 32.
    in_boxes: Descent = Descent(steps=8, first_step=1.0, last_step=0.1)
    # The first step of each start is `first_step` times a random factor between this and 1. With
    # 1 | 0.1 | 0.03 for all, 1000 starts find 0.2 | 1 | 5 on 1_2 and 1.9 | 0.03 | 0.05 on 1_9.
    box_reach: float = 0.03
    box_starts: int = 512  # for all disjuncts together; 5 % of the time of 1_9 [-]
    # Fewest boxes between two attacks, and the same as a fraction of all boxes before. 1_9 takes 1
    # to 7 s with five seeds; attacks from the centres of the lowest boxes found nothing in 58 s.
    box_pause: int = 256
    box_part: float = 0.125
    blind: Blind = Blind()
    projected: Projected = Projected()
    decoupled: Decoupled = Decoupled()
    polish: Polish = Polish()


@dataclass(frozen=True)
class Loading:
    """The points at which a network, once read, is compared with onnxruntime.

    In 31 of 37 networks, bundled and of the shared benchmarks, a tenth of each layer's neurons have
    both signs at the first three points.
    """

    both: float = 0.1  # fraction of each layer's neurons that must be seen on both sides of 0
    turns: int = 4  # that add two points each
    # Neurons of all points that are compared at once: a VGG16 (18,500,000) takes one point at a
    # time, which needs 7 GB less than all 5 together
    entries: int = 1 << 23


@dataclass(frozen=True)
class Ascent:
    """Gradient ascent on the slopes and multipliers of linear bounds."""

    steps: int = 20  # [v 0.85 1.17]
    rate: float = 0.3  # [v 1.06 0.99]
    decay: float = 0.95  # of the rate, per step [v 1.10 0.99]
    beta_rate: float = 0.1  # of multipliers, in units of the layer's mean coefficient [v 0.99 0.93]
    means: tuple[float, float] = (0.9, 0.999)  # decay rates of Adam's two means [-]
    momentum: float = 0.5  # with an aim: the fraction of a step that is added to the next one [-]
    # Step length, whatever the rates: if bounds were linear, a bound of -x would reach aim * x.
    # None: Adam's steps. On m(nist_fc) 256x4 and o(val21), bundles closed after four steps with an
    # aim of 0, 0.1 and 0.3: m 9, 20 and 29 %, o 58, 58 and 58 %.
    aim: float | None = None
    looks: bool = False  # between two steps, leave out rows whose bound is above 0 already
    left: float = 0.9  # remaining fraction of a batch up to which that is worth it [-]
    few: int = 4  # steps where no neuron is closed, with `looks` [-]
    many: float = 0.25  # fraction of closed neurons from which all steps are taken [-]
    weights_rate: float = 4.0  # of a conjunction's weights (Hedge), in units of `rate` [-]
    storable: bool = False  # the result is rounded to what a certificate holds

    def on_device(self) -> Ascent:
        """The ascent for a device that `looks` would stall: the same number of steps at any
        depth."""
        steps = (self.few + self.steps) // 2
        return replace(self, looks=False, steps=steps) if self.looks else self


@dataclass(frozen=True)
class Windows:
    """Joint bounds of neurons that see the same few inputs.

    One instance of malbeware (4917 unstable neurons) is proved after 85 steps, in 0.9 s; with rates
    of 0.3 and 0.2 after 188. 14,000 bundles in 60 s had raised its bound from -0.91 to -0.78.
    """

    inputs: int = 32  # of a window at most [-]
    neurons: int = 4  # bounded together: each doubles the number of patterns [-]
    steps: int = 300  # [-]
    share: float = 0.3  # of the time, at most, for these bounds [-]
    shared_rate: float = 0.3  # of what windows share, in units of its mean size [-]
    beta_rate: float = 0.6  # of multipliers, in units of a neuron's mean coefficient [-]
    decay: float = 0.99  # of both rates, per step [-]
    means: tuple[float, float] = (0.9, 0.999)  # as in `Ascent` [-]


@dataclass(frozen=True)
class Slopes:
    """The effort spent on the slopes of linear bounds."""

    rows: Ascent = Ascent(steps=20, rate=0.3, decay=0.95)  # output rows and hidden neurons
    # For bundles, whose bounds should rise above 0. Few steps pay while the tree is shallow and
    # fail when it grows deep: with 12, 6 and 4 steps throughout, two networks of 16x2 neurons and 4
    # inputs take 5,596, 20,602 and 54,738 bundles; with 4 at first and 16 in the end, 4,398.
    bundles: Ascent = Ascent(steps=16, rate=0.2, decay=0.9, beta_rate=0.5, aim=0.3, looks=True)
    values: Ascent = Ascent(steps=12, rate=0.2, decay=0.9, beta_rate=0.5)  # minima, distances
    # For hidden neurons, most of which have no sign: steps that aim at 0 aim too high. On mnist_fc
    # 256x4 (prop_9, 0.05), sum of both bounds and seconds of 64 rounds in layer 2 | 64 in 3 | 16
    # in 4:
    #   as `bundles`, 3 candidates: 869 in 8.8 s | 1931 in 6.3 s | 2040 in 8.1 s
    #   6 of these steps, 3 candidates: 863 in 5.1 s | 1919 in 6.2 s | 1982 in 9.3 s
    #   6 of these steps, 1 candidate: 860 in 4.4 s | 1907 in 4.7 s | 2008 in 6.6 s
    # With few steps where many neurons are closed, one above 0 in all regions may get no sign.
    signs: Ascent = Ascent(
        steps=16, rate=0.2, decay=0.9, beta_rate=0.5, looks=True, few=6, many=0.6
    )
    regions: Ascent = Ascent(steps=300, rate=0.2, decay=0.99)  # that a certificate has to hold
    entries: int = 2_000_000  # optimised at once [v 1.04 0.96]
    intervals_first: int = 5000  # neurons from which a smooth network starts with intervals [-]
    forward_factor: int = 40  # forward forms if backward passes cost so much more [v 0.96 1.01]

    def storable(self) -> Slopes:
        """These slopes, with results that a certificate can hold."""
        kinds = ("rows", "bundles", "values", "signs")
        return replace(self, **{k: replace(getattr(self, k), storable=True) for k in kinds})


@dataclass(frozen=True)
class Programs:
    """Linear and conic programs on single regions; their proposals are checked, not believed."""

    tolerance: float = 1e-9  # of HiGHS, whose vertices are much more accurate than that [-]
    sharp: float = 1e-12  # of Clarabel, which goes as far as it can [-]
    inward: float = 1e-12  # fraction of a ball's radius by which points move to its centre [-]


@dataclass(frozen=True)
class Projections:
    """Steps of alternating projections on regions that one projection leaves open."""

    quick: int = 60  # when the walk meets a boundary; if open, it waits for `long` [w 0.96 0.97]
    long: int = 4000  # for the boundaries that have waited [w 0.95 0.98]
    leaf: int = 2000  # for a bundle without open neurons [v 1.00 0.99]
    before_program: int = 200  # if a linear or conic program follows [-]
    nearest: tuple[int, ...] = (400, 4000)  # to the nearest point: first, then [n 0.40 2.02]
    look: int = 20  # steps between two checks of the result so far [w 0.98 1.09]
    offer_looks: int = 10  # checks after which a point is offered wherever it lies [-]
    inside: float = 1e-7  # slack, in lengths of rows, up to which it is offered at once [-]
    extreme: int = 6000  # primal-dual steps towards the minimum in a region [-]
    extreme_look: int = 50  # of them, between two checks of the result so far [-]
    restart: int = 4  # checks between two restarts from the mean [-]
    clip_inputs: int = 200  # inputs up to which a clip box becomes half-spaces [n 0.83 0.80]
    offer: Offer = Offer()
    programs: Programs = Programs()


@dataclass(frozen=True)
class RegionBatch:
    """The number of regions to explore at once."""

    most: int  # [w 0.97 0.93]
    workspace: int  # size of their forms, in numbers, that limits them
    least: int = 1  # whatever the size of their forms [w 0.95 0.99]


@dataclass(frozen=True)
class HashTable:
    """The hash table of the regions seen so far."""

    slots: int = 1 << 12  # at first [w 1.00 1.02]
    few: int = 256  # patterns up to which a plain set is faster [w 1.00 0.94]
    tries: int = 4  # slots tried for each pattern before counting those without one [-]
    whole: int = 4096  # patterns up to which all of them can be tried further, not half [-]
    large: int = 1 << 22  # slots from which the table grows by a factor of 2 instead of 4 [-]


@dataclass(frozen=True)
class Walk:
    """The walk from region to region."""

    breadth: RegionBatch = RegionBatch(most=4096, workspace=1 << 20, least=16)
    nearest: RegionBatch = RegionBatch(most=256, workspace=1 << 18)
    overshoots: tuple[float, ...] = (1.0, 1.0 + 1e-6, 1.0 + 1e-3)  # for float32 [w 1.01 1.01]
    waiting: int = 256  # boundaries that wait at most [w 0.94 1.01]
    few_neurons: int = 6  # unstable neurons up to which `verify` walks first [v 0.98 0.83]
    certify_regions: int = 50_000  # to walk in `certify` before the search over bundles [-]
    boundaries: int = 32  # to settle at once, nearest first [n 1.10 1.02]
    table: HashTable = HashTable()


@dataclass(frozen=True)
class Neurons:
    """Splits of neurons."""

    rule: str = "gain"  # of search/neuron_rules
    batch: int = 256  # bundles to bound at once [v 1.01 0.99]
    candidates: int = 3  # neurons whose children are bounded before one is chosen [v 1.01 1.02]
    growth: float = 3.0  # of the work with a bound's distance to 0: see `search/choice` [-]
    most: int | None = None  # bundles after which the search gives up [v 1.00 1.02]
    most_hopeless: int | None = None  # the same if hardly any is closed [v 1.03 0.91]
    hardly: float = 0.8  # fraction of open leaves above which hardly any is closed [-]
    # Clipping recomputes the sides (lower, upper bounds) of neurons that cost most: `clip_bundles`.
    costly: float = 0.5  # fraction of the total cost that these sides make up [-]
    clipped: int = 256  # sides at most [-]
    thorough: tuple[float, int] = (0.9, 512)  # these two numbers, where they gain more [-]
    trial: tuple[int, int] = (512, 128)  # clipped bundles before the trial of both, and in it
    worth: float = 1.33  # factor by which `thorough` has to gain more to be used
    again: float = 0.3  # of what a bundle lacks; if clipping promises more, it is bounded again [-]
    near: float = 0.05  # bundles are clipped if below 0 by at most this part of their range [-]
    low: int = 200  # inputs up to which all bundles and layers are clipped: `clipped_neurons`
    short_share: float = 0.25  # of the time, at most, for the first, short search [v 1.04 0.99]


@dataclass(frozen=True)
class Hidden:
    """Bounds of hidden neurons, over the whole domain and over the part of it that is left."""

    refine_share: float = 0.2  # of the time, at most, for slopes of hidden layers [v 1.05 0.97]
    # neurons of a large smooth network that get backward passes of their own at first, then twice
    # as many: one of vit_2023 takes 8 s starting at 300, and over 100 s for all of them at once [-]
    worthwhile: int = 300
    worth_gain: float = 0.15  # fraction of a bound's distance to 0 that each turn has to gain [-]
    worth_share: float = 0.5  # of the time, at most, for that before longer attacks [-]
    # error of a row as a fraction of it: above the first number, more neurons are bounded, as long
    errors: tuple[float, float] = (0.6, 0.04)  # as each turn lowers it by the second fraction [-]
    rounds: int = 8  # splits of each side of a hidden neuron, doubled from turn to turn [-]
    batch: int = 512  # bundles of such splits to bound at once, but at least one per row
    # One in so many of a row's waiting bundles is split at once. With 1 bundle | 512, 1 in 4 | 512,
    one_in: int = 4  # all: five neurons take 0.95 | 0.54 | 0.40 s, for chords of 3.7 | 3.8 | 5.9
    candidates: int = 1  # as in `Neurons`, for these splits; measured at `Slopes.signs`
    share: float = 0.75  # of the time, at most, for splits of hidden neurons [-]
    doubtful_share: float = 0.2  # the same if better slopes have made hardly any stable [-]
    pays: float = 0.04  # fraction by which all rounds have to lower the chords of such neurons [-]
    early: int = 4  # after 1 / early of the rounds, stop if they gained less than their share
    # Fraction of the rows' distance to 0 that a turn has to gain for a new search, and for the next
    # turn: after one, 1204 of relusplitter takes 31,500 bundles instead of more than 300,000. [-]
    better: float = 0.01
    gain: float = 0.05
    together: int = 64  # neurons that share a cut-down network, at most [-]
    growth: float = 3.0  # and their inputs, as a multiple of those of one of them [-]
    # tighter bounds have paid if at most this fraction of the unstable neurons is left
    tightened: float = 0.97  # [v 0.98 0.99]
    # neurons up to which hidden bounds are recomputed for each bundle of a cap [r 1.01 1.06]
    small: int = 160
    # fraction of the radius: beyond `small`, they are if the level has risen so much [r 0.86 0.91]
    rise: float = 0.05


@dataclass(frozen=True)
class BoxTurn:
    """Neuron splits in boxes that have few unstable neurons.

    Processor seconds of ACAS Xu 4_2 prop_2, 5_3 prop_2 and robot_6 of reach_prob_density: 45, 5.9
    and 3.6 without turns; 4.4, 2.4 and 3.6 with them. The comments give those of other numbers.
    """

    few: float = 40.0  # unstable neurons of a box, at first
    # Bundles per box that a turn decides: below `cheap`, `few` grows; above `dear`, it falls.
    # With 12 and 25: 4.8, 4.0 and 3.9; by the fraction of boxes decided instead: 5.0, 3.3 and 9.9.
    cheap: float = 10.0
    dear: float = 15.0
    more: float = 1.25  # factor by which it grows [-]
    less: float = 1.5  # factor by which it falls; with 2, and 8 and 12 bundles: 5.2, 4.2 and 3.8
    rounds: int = 7  # of splits
    open: int = 16  # bundles of a box that may be open; with 6 rounds and 8: 5.4, 2.2 and 3.5
    steps: int = 8  # of an ascent where no neuron is closed [-]


@dataclass(frozen=True)
class Inputs:
    """Splits of inputs."""

    rule: str = "loss"  # of search/input_rules
    turn: BoxTurn = BoxTurn()
    batch: int = 512  # boxes at once; cersyve's two longest: 5.9, 12.0 s; 256: 11.6, 16.9; 128: 20
    cases: int = 16  # of a property, from which their boxes are first bounded together [-]
    # Halvings of each box that intervals leave open in a smooth network, before its own query: 500
    # boxes of nn4sys's mscn_128d take 8 s with 10 halvings and over 100 s without [-]
    halvings: int = 10
    halves: int = 8  # parts of a box that may be open, on average, for that [-]
    few: int = 16  # number of inputs up to which they are split first [a 1.00 0.98]
    some: int = 64  # number up to which splitting them gets a turn [v 0.99 0.98]
    many: int = 1000  # the same if a neuron reads at most `few` of them [a 1.02 1.15]
    share: float = 0.4  # of the time, at most, for that turn; see `Sharing.look` [-]
    value_share: float = 0.8  # the same for minima over `few` inputs [2 of 5 against 5 of 5]
    gaps: tuple[float, ...] = (64.0, 8.0, 1.0)  # of smooth minima, times the gap asked for [-]
    smooth_share: float = 0.7  # of the time, for the first of two ways in smooth networks [-]
    together: int = 12  # number of inputs up to which products are also bounded jointly [-]
    # Second-order forms; thousands of boxes and seconds are those of lsnc_relu's 8th property.
    symbols: int = 8  # of ReLUs [61 in 11.0 s; with 24, 58 in 15.1 s]
    descent: int = 12  # rounds to a form's minimum [52 in 5.7 s; 6: 55 in 6.6, 3: 61 in 6.6]
    # The trial of such forms against linear bounds (which closes more boxes per second?) ends after
    # so many boxes closed by one of the two only, so many bounded by both, or seconds of either [-]
    trial: tuple[int, int, float] = (64, 2048, 0.5)
    curved_relus: int = 64  # at most, before the first smooth function, for such forms [-]
    curved_batch: int = 512  # boxes to bound at once by such forms [-]
    curved_corners: float = 0.03  # as `smooth_corners` [51; 0: 58, 0.1: 61, 0.3: 226]
    curved_mixing: int = 2  # rounds of weighing rows [55 in 6.7 s; 1: 58, 4: 51, 8: 51 in 8.1 s]
    curved_rate: float = 4.0  # as `mixing_rate` [52; 2: 56, 1: 57, 8: 127]
    # Gap allowed between the bounds of a minimum, in proved rounding errors of a point: over 8
    # random networks a gap of 1e-14 took 15.7 s with 0, and 3.9 s with 2.
    rounding: float = 2.0
    tangents: int = 6  # weights to try for two rows of a conjunction [-]
    mixing: int = 16  # rounds of weighing a conjunction's rows against each other [a 1.01 1.08]
    # learning rate of the first round; it falls with the square root of the round [a 0.80 1.15]
    mixing_rate: float = 4.0
    every: float = 0.1  # share of a sum's loss that each row gets [sat_relu: 95 boxes; 0: 25,465]
    moves: float = 0.01  # of a neuron's range: slopes that move it less may be noise [a 1.00 1.00]
    corners: float = 1e-3  # weight of an input's reach, beside the loss [a 1.08 1.17]
    # The same in smooth networks: 24 boxes of lsnc_relu take 9,120 more with 1e-3, 7,504 with 0.1
    smooth_corners: float = 0.1
    # Slopes are taken off the centre by this fraction of the radius: at a kink there are none. If
    # inputs have a kink at the centre, 31 boxes, over 300,000 with 0.
    aside: float = 1e-3
    small: float = 2.0**-10  # of the root's sides, below which a box may be walked through [-]
    smallest: float = 2.0**-20  # below which it is, whatever is unstable in it [-]
    unstable: int = 6  # neurons up to which a small box is walked through [-]


@dataclass(frozen=True)
class RadiusSearch:
    """The search for the distance to the nearest counterexample."""

    # relative precision of the radius that plain bounds prove, before a search [r 1.02 1.04]
    rough: float = 0.1
    fine: float = 1e-3  # the same if a search does not end soon [-]
    # Fractions of the time, and of the tree that have to be closed by then: a proof at the goal
    # with less closed is not expected to end. [r 1.05 1.00]
    promising: tuple[tuple[float, float], ...] = ((0.1, 1e-3), (0.4, 0.15), (0.7, 0.75))
    ends: float = 0.05  # fraction of an interval that regula falsi leaves out at either end [-]
    grow_share: float = 0.05  # of the time, for the first try of a radius [-]
    step: float = 1.3  # factor from the largest proved radius to the next one [-]
    close: float = 1.1  # times that radius: if the least unproved one is nearer, it resumes [-]
    kept: int = 20_000  # closed bundles that are handed on to the next radius [r 1.01 1.09]
    usual: float = 60.0  # seconds to divide if no limit is given [-]
    ball_share: float = 0.25  # of the remaining time, for one ball of a smooth network [-]
    attack_share: float = 0.4  # of the time, at most, for attacks [r 1.06 1.06]
    least: float = 1 / 64  # fraction of the goal at which the growing radius starts [-]
    # Relative distances by which a point is moved on, until float32 sees it on the other side.
    overshoots: tuple[float, ...] = (0.0, 1e-7, 3e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # [r 0.98 0.99]


@dataclass(frozen=True)
class Sharing:
    """Several processes on one search."""

    # Seconds before a search is shared: if more than a batch is open, and in any case. With 0.3 for
    # both, a search of 1.0 s (ACAS Xu 1_9) was no faster and took 1.4 s of processor time.
    alone: tuple[float, float] = (0.3, 0.6)
    # A search expected to give up within so many seconds is not shared any more: a short search of
    # mnist_fc 256x6 (prop_10) took 1.0 s alone, and 1.3 s with two processes.
    ending: float = 1.0
    turn: float = 2.0  # seconds between reports of open records: less is lost if it dies [-]
    telling: float = 0.02  # fraction of its time that these reports may take, at most [-]
    least_work: float = 0.15  # seconds of independent work from which a new process pays [-]
    pause: float = 0.1  # seconds between two looks at the clock, and notes of how much is open [-]
    tell: float = 2.0  # seconds between two forecasts that are shown [-]
    soon: float = 0.3  # of the time left: a search that should end in half of it continues [-]
    worse: float = 3.0  # until so many times its forecast is left: oval21 9916 took 75 s more
    # A search with a limit stops after so many parts if so many times the limit are expected and
    # the rest would take more than this part of the time so far. [oval21 9931: 51 s, without 89 s]
    doubt: tuple[int, float, float] = (500, 50.0, 0.1)
    look: float = 0.05  # of the time left, before a search gives way [safenlp: 4 s, without 12 s]
    restarts: int = 8  # processes that are replaced after they have died [-]


@dataclass(frozen=True)
class Shrinking:
    """Transformation of a query to a smaller one."""

    deep: int = 6  # maps of a chain beyond which the 2-norms of errors are computed [-]
    chunk: int = 16 << 20  # bytes at once: more is no faster; the deadline is checked between [-]
    products: int = 10**10  # multiplications at once, about a second, between deadline checks [-]
    # bytes of columns to propagate forward at once on a CPU: 64 channels take 0.20 s with 1 MB, and
    # 0.45 s with 8 MB and more, which ask for new memory each time
    pushed: int = 1 << 20
    # Inputs that vary, up to which forms go forward: seconds forward | backward are 0.7 | 45
    columns: int = 256  # on cgan (5 inputs), 3 | 28 on biasfield (16), 0.1 | 0.05 on metaroom (157)
    rounded_away: float = 1e-6  # fraction left by rounding of weights that cancel [v 0.98 1.02]


@dataclass(frozen=True)
class Common:
    """Numbers that are the same under every strategy: processors and people determine them."""

    usual: float = 600.0  # seconds of which a share is taken if no limit is given
    stalled: float = 3.0  # seconds without a byte after which a process counts as stopped
    running: float = 0.2  # of `Sharing.least_work`, from which a process that runs already pays
    patience: float = 4.0  # times one's own part, to wait for another process before doing its part
    certify_share: float = 0.95  # of a point's time for its search; the rest is for an attack
    cached: int = 32 << 20  # bytes of a backward pass on a CPU: more rows at once were slower
    cached_windows: int = 8 << 20  # the same for rows that are patches
    # bytes of an ascent, an attack, or rows at one place of a convolution, on a CPU: with 4 GB a
    # batch on yolo_2023 ended 21 s after its deadline
    ascents: int = 512 << 20
    window: float = 0.6  # of a plane: larger patches are no faster than rows over all of it
    sparse: float = 0.1  # fraction of nonzero entries up to which a sparse matrix pays
    sparse_from: int = 50_000  # entries below which a dense product is fast enough
    sparse_vectors: int = 64  # in one product with such a matrix; many more at once were slower


COMMON = Common()


@dataclass(frozen=True)
class Strategy:
    """All tuning numbers."""

    attack: Attack = Attack()
    shrinking: Shrinking = Shrinking()
    slopes: Slopes = Slopes()
    windows: Windows = Windows()
    projections: Projections = Projections()
    walk: Walk = Walk()
    neurons: Neurons = Neurons()
    short: Neurons = Neurons(most=2000, most_hopeless=300)  # the first search
    hidden: Hidden = Hidden()
    inputs: Inputs = Inputs()
    radius: RadiusSearch = RadiusSearch()
    crew: Sharing = Sharing()
