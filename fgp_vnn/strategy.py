"""Every number that tunes the search.

None of them decides what counts as a proof: any strategy gives sound answers, some sooner than
others. A function takes the part that it needs. In brackets stands the processor time with the
number halved and doubled, as a ratio to the default, by `scripts/benchmarks/strategy.py`: of v
`verify` on bundled instances that need a search, a three of ACAS Xu, w `certify --engine walk`, r
`radius`, n `radius --engine walk`; runs of a second, in which less than 0.15 from 1 is noise, and
no verdict changed. [-] is a number that these sets do not read or that has not been measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Offer:
    """Which points a search hands to onnxruntime."""

    near: float = 1e-4  # their distance to the unsafe set at most, relative to g [v 1.04 1.01]
    most: int = 8  # points at a time, the clearest first [-]


@dataclass(frozen=True)
class Descent:
    """Projected gradient descent with momentum towards every disjunct at once."""

    restarts: int = 1  # starts per disjunct; the first is the centre [v 0.99 0.99]
    steps: int = 10  # [v 0.92 1.02]
    first_step: float = 0.5  # as a part of the domain's size [v 1.01 0.98]
    last_step: float = 0.02  # [v 1.11 1.10]
    momentum: float = 0.7  # [v 1.01 0.90]
    offer: Offer = Offer()
    single_from: int = 1000  # inputs from which on float32 is faster [v 1.00 0.98]
    seed: int = 0  # of the random starts: the user's, not tuned


@dataclass(frozen=True)
class Projected:
    """The minimum-norm attack by projections onto decision boundaries (FAB)."""

    steps: int = 40  # [r 0.96 1.28]
    bias: float = 0.1  # greatest weight of the centre's projection in a step [r 0.89 1.04]
    overshoot: float = 1.05  # of a step towards the boundary [r 0.91 0.97]
    back: float = 0.95  # factor of the distance after the boundary was crossed [r 1.32 1.02]
    kept: int = 2  # points that are polished [r 1.02 1.02]
    starts: int = 32  # at least, and four for each class [r 1.10 1.00]
    active: int = 6  # rounds of an active set, for a projection in a box [r 1.01 0.83]


@dataclass(frozen=True)
class Decoupled:
    """The minimum-norm attack that moves length and direction separately (DDN, FMN).

    Of a pair, the first value holds at the first step and the second at the last, with half a
    cosine in between.
    """

    steps: int = 20  # [r 1.04 1.06]
    length: tuple[float, float] = (1.0, 0.01)  # of a step, in radii [r 1.23 0.93]
    change: tuple[float, float] = (0.05, 0.001)  # of the radius, in radii [r 1.02 0.93]
    share: float = 0.5  # of the starts [r 1.10 1.06]
    kept: int = 4  # points that are polished [r 1.02 1.01]


@dataclass(frozen=True)
class Polish:
    """Moving the points that minimum-norm attacks found nearer, along their boundaries."""

    count: int = 6  # points [r 1.09 1.09]
    rounds: int = 12  # [r 1.12 0.98]
    bisections: tuple[int, int] = (14, 40)  # of a ray: in a round, and at the end [r 1.02 1.01]
    shares: tuple[float, ...] = (1.0, 0.5, 0.2, 0.05)  # of the way along the boundary [r 1.02 0.98]
    offered: int = 3  # of the points, to the network itself [r 1.00 1.05]


@dataclass(frozen=True)
class Blind:
    """The attack on a program that is not understood (measured: 12 of 12 traffic signs)."""

    descent: Descent = Descent(restarts=16, steps=40)
    share: float = 0.5  # of the time, where a network is understood and its gradients are 0 [-]
    rounds: int = 16  # of a descent and of random changes
    targets: int = 4  # disjuncts, the nearest ones
    near: float = 0.3  # of the domain's size, around the best point: half of the later starts
    changes: int = 40  # batches of random changes in a round
    shares: tuple[float, ...] = (0.5, 0.2, 0.1, 0.04, 0.01, 0.003)  # of inputs changed at once
    probes: int = 32  # where there is no gradient: differences for each point
    probe: float = 0.02  # of the domain's size: how far they reach


@dataclass(frozen=True)
class Attack:
    """Attacks: looking for counterexamples by gradients."""

    quick: Descent = Descent(restarts=1, steps=6)  # before any bound
    long: Descent = Descent(restarts=8, steps=25)  # where plain bounds leave the query open
    # Of the time that is left, at most, for these two: a network like VGG16 with 249 other classes
    # spent 32 of 30 s on the first.
    shares: tuple[float, float] = (0.1, 0.3)
    # Between batches of boxes, from points of open ones. Counterexamples a second on ACAS Xu 1_2 |
    # 5_3 prop_2 | 1_9 prop_7: with 8 steps 62 | 2 | 19, with 12 53 | 4 | 14, with 5 49 | 3 | 32.
    in_boxes: Descent = Descent(steps=8, first_step=1.0, last_step=0.1)
    # The first step of each start is that times a random factor between this and 1. With
    # 1 | 0.1 | 0.03 for all, 1000 starts find 0.2 | 1 | 5 on 1_2 and 1.9 | 0.03 | 0.05 on 1_9.
    box_reach: float = 0.03
    box_starts: int = 512  # for all disjuncts together; 5 % of the time of 1_9 [-]
    # Boxes between two of them, at least, also as a part of all before. Seconds of 1_9 with five
    # seeds are 1 to 7; attacks from the centres of the lowest boxes had found nothing after 58.
    box_pause: int = 256
    box_part: float = 0.125
    blind: Blind = Blind()
    projected: Projected = Projected()
    decoupled: Decoupled = Decoupled()
    polish: Polish = Polish()


@dataclass(frozen=True)
class Loading:
    """The points at which a network that is read is compared with onnxruntime.

    Of 37 networks, bundled and of the shared benchmarks, 31 have a tenth of each layer on both
    sides at the first three points.
    """

    both: float = 0.1  # of each layer's neurons are to be seen on both sides of 0
    turns: int = 4  # of two more points each
    # Neurons of all points that are compared at once: a VGG16 (18,500,000) takes one after the
    # other, with 7 GB less than all 5 together
    entries: int = 1 << 23


@dataclass(frozen=True)
class Ascent:
    """Gradient ascent on the slopes and multipliers of linear bounds."""

    steps: int = 20  # [v 0.85 1.17]
    rate: float = 0.3  # [v 1.06 0.99]
    decay: float = 0.95  # of the rate, per step [v 1.10 0.99]
    beta_rate: float = 0.1  # of multipliers, in the layer's mean coefficient [v 0.99 0.93]
    means: tuple[float, float] = (0.9, 0.999)  # of Adam's two means, the weight of the past [-]
    momentum: float = 0.5  # with an aim: the part of a step that is added to the next one [-]
    # Steps as long as would bring a bound to 0, and by this part of what it lacks beyond, were it
    # linear, whatever the rates say; None: Adam's steps. On m(nist_fc) 256x4 and o(val21), bundles
    # closed after four steps with an aim of 0, 0.1 and 0.3: m 9, 20 and 29 %, o 58, 58 and 58 %.
    aim: float | None = None
    looks: bool = False  # at what is above 0 already, between two steps, to leave it out
    left: float = 0.9  # part of a batch up to which it is worth leaving the others out [-]
    few: int = 4  # steps where no neuron is closed, with `looks` [-]
    many: float = 0.25  # part of the neurons that is closed where all of the steps are taken [-]
    weights_rate: float = 4.0  # of a conjunction's weights (Hedge), in `rate` [-]
    storable: bool = False  # the result is rounded to what a certificate holds

    def on_device(self) -> Ascent:
        """The same for a device that each look would stall: as many steps at any depth."""
        steps = (self.few + self.steps) // 2
        return replace(self, looks=False, steps=steps) if self.looks else self


@dataclass(frozen=True)
class Windows:
    """Joint bounds of neurons that see the same few inputs.

    One of malbeware (4917 unstable neurons) is proved after 85 steps, in 0.9 s; with rates of 0.3
    and 0.2 after 188. 14,000 bundles in 60 s had moved its bound from -0.91 to -0.78.
    """

    inputs: int = 32  # of a window at most [-]
    neurons: int = 4  # that are bounded together: twice as many patterns with each [-]
    steps: int = 300  # [-]
    share: float = 0.3  # of the time, at most, for them [-]
    shared_rate: float = 0.3  # of a step of what windows share, in its mean size [-]
    beta_rate: float = 0.6  # of multipliers, in the mean coefficient of a neuron [-]
    decay: float = 0.99  # of both rates, per step [-]
    means: tuple[float, float] = (0.9, 0.999)  # as in `Ascent` [-]


@dataclass(frozen=True)
class Slopes:
    """How much is spent on the slopes of linear bounds."""

    rows: Ascent = Ascent(steps=20, rate=0.3, decay=0.95)  # output rows and hidden neurons
    # Of bundles whose bounds are to be above 0. Few steps pay where the tree stays shallow and fail
    # where it grows deep: with 12, 6 and 4 steps throughout, two networks of 16x2 neurons and 4
    # inputs take 5,596, 20,602 and 54,738 bundles; with 4 at first and 16 in the end, 4,398.
    bundles: Ascent = Ascent(steps=16, rate=0.2, decay=0.9, beta_rate=0.5, aim=0.3, looks=True)
    values: Ascent = Ascent(steps=12, rate=0.2, decay=0.9, beta_rate=0.5)  # least ones, distances
    # Of hidden neurons, most of which have no sign: steps that aim at 0 aim too high. On mnist_fc
    # 256x4 (prop_9, 0.05), sum of both bounds and seconds of 64 rounds in layer 2 | 64 in 3 | 16
    # in 4:
    #   as `bundles`, 3 candidates: 869 in 8.8 s | 1931 in 6.3 s | 2040 in 8.1 s
    #   6 of these steps, 3 candidates: 863 in 5.1 s | 1919 in 6.2 s | 1982 in 9.3 s
    #   6 of these steps, 1 candidate: 860 in 4.4 s | 1907 in 4.7 s | 2008 in 6.6 s
    # With no more steps where many neurons are closed, a neuron that is above 0 in all regions can
    # stay without a sign.
    signs: Ascent = Ascent(
        steps=16, rate=0.2, decay=0.9, beta_rate=0.5, looks=True, few=6, many=0.6
    )
    regions: Ascent = Ascent(steps=300, rate=0.2, decay=0.99)  # that a certificate has to hold
    entries: int = 2_000_000  # optimised at once [v 1.04 0.96]
    intervals_first: int = 5000  # neurons of smooth networks whose slopes start from intervals [-]
    forward_factor: int = 40  # where backward passes cost so much more, forms do [v 0.96 1.01]

    def storable(self) -> Slopes:
        """The same, with results that a certificate can hold."""
        kinds = ("rows", "bundles", "values", "signs")
        return replace(self, **{k: replace(getattr(self, k), storable=True) for k in kinds})


@dataclass(frozen=True)
class Programs:
    """Linear and conic programs on single regions; what they propose is checked, not believed."""

    tolerance: float = 1e-9  # of HiGHS, whose vertices come out much more accurate than that [-]
    sharp: float = 1e-12  # of Clarabel, which goes as far as it gets [-]
    inward: float = 1e-12  # part of a ball's radius by which a point is moved to its centre [-]


@dataclass(frozen=True)
class Projections:
    """Steps of alternating projections on regions that one projection leaves open."""

    quick: int = 60  # when the walk meets a boundary; the rest waits [w 0.96 0.97]
    long: int = 4000  # for the boundaries that have waited [w 0.95 0.98]
    leaf: int = 2000  # for a bundle with nothing left open [v 1.00 0.99]
    before_program: int = 200  # where a linear or conic program comes after them [-]
    nearest: tuple[int, ...] = (400, 4000)  # to the nearest point: first, then [n 0.40 2.02]
    look: int = 20  # steps between two looks at what has been reached [w 0.98 1.09]
    offer_looks: int = 10  # looks after which a point is offered wherever it lies [-]
    inside: float = 1e-7  # slack, in lengths of rows, up to which it is offered at once [-]
    extreme: int = 6000  # primal and dual steps towards the least value in a region [-]
    extreme_look: int = 50  # of them, between two looks at what has been reached [-]
    restart: int = 4  # looks between two restarts from the mean [-]
    clip_inputs: int = 200  # inputs up to which a clip box is written as half-spaces [n 0.83 0.80]
    offer: Offer = Offer()
    programs: Programs = Programs()


@dataclass(frozen=True)
class RegionBatch:
    """How many regions are explored at once."""

    most: int  # [w 0.97 0.93]
    workspace: int  # numbers that their forms may take
    least: int = 1  # whatever they take [w 0.95 0.99]


@dataclass(frozen=True)
class HashTable:
    """The hash table of the regions that were seen."""

    slots: int = 1 << 12  # at first [w 1.00 1.02]
    few: int = 256  # patterns up to which a plain set is quicker [w 1.00 0.94]
    tries: int = 4  # slots for each pattern before a look at which ones have found none [-]
    whole: int = 4096  # patterns up to which there is room for all of them in that, not half [-]
    large: int = 1 << 22  # slots from which on it grows by a factor of 2 instead of 4 [-]


@dataclass(frozen=True)
class Walk:
    """The walk from region to region."""

    breadth: RegionBatch = RegionBatch(most=4096, workspace=1 << 20, least=16)
    nearest: RegionBatch = RegionBatch(most=256, workspace=1 << 18)
    overshoots: tuple[float, ...] = (1.0, 1.0 + 1e-6, 1.0 + 1e-3)  # for float32 [w 1.01 1.01]
    waiting: int = 256  # boundaries that wait at most [w 0.94 1.01]
    few_neurons: int = 6  # unstable ones up to which `verify` walks first [v 0.98 0.83]
    certify_regions: int = 50_000  # that `certify` walks before it searches bundles [-]
    boundaries: int = 32  # that are settled at once, nearest first [n 1.10 1.02]
    table: HashTable = HashTable()


@dataclass(frozen=True)
class Neurons:
    """Splits of neurons."""

    rule: str = "gain"  # of search/neuron_rules
    batch: int = 256  # bundles that are bounded at once [v 1.01 0.99]
    candidates: int = 3  # neurons whose halves are looked at before one is chosen [v 1.01 1.02]
    most: int | None = None  # bundles after which the search gives up [v 1.00 1.02]
    most_hopeless: int | None = None  # the same if hardly any is closed [v 1.03 0.91]
    hardly: float = 0.8  # part of the leaves that is still open where hardly any is closed [-]
    # Which neurons of an open bundle are bounded over what its linear bound leaves: those that cost
    # it most, with the numbers of `search/clip_bundles`.
    costly: float = 0.5  # part of the cost of all neurons that theirs makes up
    clipped: int = 128  # neurons at most
    thorough: tuple[float, int] = (0.9, 256)  # other such numbers, for where they gain more
    trial: tuple[int, int] = (512, 128)  # clipped bundles before both are tried, and on how many
    worth: float = 1.33  # factor by which the others have to gain more than the usual ones
    # Part of what a bundle lacks that their narrower bounds have to promise, for it to be bounded
    again: float = 0.3  # once more; with infinity | 0.3 one of oval21 takes 198 | 60 bundles
    near: float = 0.05  # part of its bound's range that such a bundle lacks at most [-]
    short_share: float = 0.25  # of the time, at most, for the first, short search [v 1.04 0.99]


@dataclass(frozen=True)
class Hidden:
    """Bounds of hidden neurons, over the whole domain and over what is left of it."""

    refine_share: float = 0.2  # of the time, at most, for slopes of hidden layers [v 1.05 0.97]
    # neurons of a large smooth network that are bounded first by rows of their own, then twice as
    # many: seconds on one of vit_2023 are 8 from 300 on, and over 100 for all of them at once [-]
    worthwhile: int = 300
    worth_gain: float = 0.15  # part of what a bound lacks that each turn has to bring [-]
    worth_share: float = 0.5  # of the time, at most, for that before longer attacks [-]
    # part of a row that is error: beyond the first, if it falls by the second, more are bounded [-]
    errors: tuple[float, float] = (0.6, 0.04)
    rounds: int = 8  # splits of each side of a hidden neuron, doubled from turn to turn [-]
    batch: int = 512  # bundles of such splits that are bounded at once, or one of each row
    # Of so many that wait for a row, one is split at once. With 1 bundle | 512, 1 in 4 | 512, all
    one_in: int = 4  # five neurons take 0.95 | 0.54 | 0.40 s, for chords of 3.7 | 3.8 | 5.9
    candidates: int = 1  # as in `Neurons`, for these splits; `Slopes.signs` says what they bring
    share: float = 0.75  # of the time, at most, for splits of hidden neurons [-]
    doubtful_share: float = 0.2  # the same where better slopes have made hardly any stable [-]
    pays: float = 0.04  # part by which all rounds have to lower the chords of such neurons [-]
    early: int = 4  # the rest is left out where that part of the rounds brings less than its share
    # Part of what the rows lack that a turn has to bring for a new search, and for the next turn:
    # after one, 1204 of relusplitter takes 31,500 bundles in place of more than 300,000. [-]
    better: float = 0.01
    gain: float = 0.05
    together: int = 64  # neurons that share a cut-down network, at most [-]
    growth: float = 3.0  # and how many times as many inputs as one of them they read [-]
    # part of the unstable neurons that is left where tighter bounds have paid [v 0.98 0.99]
    tightened: float = 0.97
    # neurons up to which hidden bounds are made anew for each bundle of a cap [r 1.01 1.06]
    small: int = 160
    # of the radius: beyond `small`, where the level has risen so much [r 0.86 0.91]
    rise: float = 0.05


@dataclass(frozen=True)
class BoxTurn:
    """Splits of neurons in boxes that have few unstable ones.

    Processor seconds of ACAS Xu 4_2 prop_2, 5_3 prop_2 and robot_6 of reach_prob_density: 45, 5.9
    and 3.6 without turns; 4.4, 2.4 and 3.6 with them, and as follows with other numbers.
    """

    few: float = 40.0  # unstable neurons of a box, at first
    # Bundles for each box that a turn decides: where they are fewer or more, `few` grows or falls.
    # With 12 and 25: 4.8, 4.0 and 3.9; by the part of boxes that are decided: 5.0, 3.3 and 9.9.
    cheap: float = 10.0
    dear: float = 15.0
    more: float = 1.25  # factor by which it grows [-]
    less: float = 1.5  # and by which it falls; with 2, and 8 and 12 bundles: 5.2, 4.2 and 3.8
    rounds: int = 7  # of splits, and
    open: int = 16  # bundles of a box that may be open; with 6 and 8: 5.4, 2.2 and 3.5
    steps: int = 8  # of an ascent where no neuron is closed [-]


@dataclass(frozen=True)
class Inputs:
    """Splits of inputs."""

    rule: str = "loss"  # of search/input_rules
    turn: BoxTurn = BoxTurn()
    batch: int = 512  # boxes at once; cersyve's two longest: 5.9, 12.0 s; 256: 11.6, 16.9; 128: 20
    cases: int = 16  # of a property, from which on their boxes are first bounded together [-]
    # Of the boxes that intervals leave open in a smooth network, each before it is asked about
    # alone: seconds for 500 boxes of nn4sys's mscn_128d are 8 with 10 and over 100 without [-]
    halvings: int = 10
    halves: int = 8  # parts of a box that may be open, on average, for that [-]
    few: int = 16  # inputs up to which they are split first [a 1.00 0.98]
    some: int = 64  # up to which splitting them gets a turn [v 0.99 0.98]
    many: int = 1000  # the same where a neuron sees `few` of them [a 1.02 1.15]
    share: float = 0.4  # of the time, at most, for that turn [-]
    value_share: float = 0.8  # the same for least values over `few` inputs [2 of 5 against 5 of 5]
    gaps: tuple[float, ...] = (64.0, 8.0, 1.0)  # least values of smooth networks, in that asked [-]
    smooth_share: float = 0.7  # of the time, for the first of two ways in smooth networks [-]
    together: int = 12  # up to which products are also bounded together [-]
    # Forms of second order; thousands of boxes and seconds are those of lsnc_relu's 8th property.
    symbols: int = 8  # of ReLUs [61 in 11.0 s; with 24, 58 in 15.1 s]
    descent: int = 12  # rounds to where a form is least [52 in 5.7 s; 6: 55 in 6.6, 3: 61 in 6.6]
    # boxes that such forms or linear bounds alone close, boxes that both of them bound, and seconds
    # of either, up to which it is tried which of them closes more boxes a second [-]
    trial: tuple[int, int, float] = (64, 2048, 0.5)
    curved_relus: int = 64  # before the first function that bends, for such forms [-]
    curved_batch: int = 512  # boxes that are bounded at once by such forms [-]
    curved_corners: float = 0.03  # as `smooth_corners` [51; 0: 58, 0.1: 61, 0.3: 226]
    curved_mixing: int = 2  # rounds of weighing rows [55 in 6.7 s; 1: 58, 4: 51, 8: 51 in 8.1 s]
    curved_rate: float = 4.0  # as `mixing_rate` [52; 2: 56, 1: 57, 8: 127]
    # Proved rounding errors of a point that may stay between the ends of a least value: over 8
    # random networks a gap of 1e-14 took 15.7 s with 0, and 3.9 s with 2.
    rounding: float = 2.0
    tangents: int = 6  # weights of two rows of a conjunction that are tried [-]
    mixing: int = 16  # rounds of weighing a conjunction's rows by each other [a 1.01 1.08]
    # of the first round, in exponents; it falls by their square root [a 0.80 1.15]
    mixing_rate: float = 4.0
    # weight of an input's reach in the choice of a side, beside the loss [a 1.08 1.17]
    corners: float = 1e-3
    # The same in smooth networks: 24 boxes of lsnc_relu take 9,120 more with 1e-3, 7,504 with 0.1,
    # 7,560 with 0.3 and 8,418 with 1.
    smooth_corners: float = 0.1
    # of a radius, from the centre to where slopes are taken: at a kink there are none. Where inputs
    # have theirs at the centre, 31 boxes, over 300,000 with 0; ACAS Xu 12,825 with either.
    aside: float = 1e-3
    small: float = 2.0**-10  # of the root's sides, from which on a box may be walked through [-]
    smallest: float = 2.0**-20  # and from which on it is, whatever is unstable in it [-]
    unstable: int = 6  # neurons, up to which a small box is walked through [-]


@dataclass(frozen=True)
class RadiusSearch:
    """The search for the distance to the nearest counterexample."""

    # relative, how closely the radius of plain bounds is found before a search [r 1.02 1.04]
    rough: float = 0.1
    fine: float = 1e-3  # and where a search does not end soon [-]
    # Shares of the time, and the part of the tree that has to be closed by then: a proof at the
    # goal that has less does not look as if it would end. [r 1.05 1.00]
    promising: tuple[tuple[float, float], ...] = ((0.1, 1e-3), (0.4, 0.15), (0.7, 0.75))
    ends: float = 0.05  # of an interval, at either end, where regula falsi does not look [-]
    grow_share: float = 0.05  # of the time, for a radius that is tried first [-]
    step: float = 1.3  # factor from the largest radius that is proved to the next one [-]
    close: float = 1.1  # factor at which the least unproved radius goes on [-]
    kept: int = 20_000  # closed bundles that are handed on to the next radius [r 1.01 1.09]
    usual: float = 60.0  # seconds to share out where no limit is given [-]
    ball_share: float = 0.25  # of what is left, for one ball of a smooth network [-]
    attack_share: float = 0.4  # of the time, at most, for attacks [r 1.06 1.06]
    least: float = 1 / 64  # part of the goal from which on the radius grows [-]
    # Factors by which a point is moved on, until float32 sees it on the other side.
    overshoots: tuple[float, ...] = (0.0, 1e-7, 3e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # [r 0.98 0.99]


@dataclass(frozen=True)
class Sharing:
    """Several processes on one search."""

    # Seconds of a search before it is shared: where more than a batch is open, and at most. With
    # 0.3 for all, one of 1.0 s (ACAS Xu 1_9) was no faster and took 1.4 s of processor time.
    alone: tuple[float, float] = (0.3, 0.6)
    # Seconds before a search gives up, as far as can be told, in which it is not shared any more: a
    # short search of mnist_fc 256x6 (prop_10) took 1.0 s alone, and 1.3 s with two processes.
    ending: float = 1.0
    # Seconds after which a process says what it has open, so that less is lost if it dies [-]
    turn: float = 2.0
    telling: float = 0.02  # part of its time that this may take, at most [-]
    least_work: float = 0.15  # seconds of independent work from which on a process pays [-]
    pause: float = 0.1  # seconds between two looks at the clock, and notes of how much is open [-]
    tell: float = 2.0  # seconds between two forecasts that are told [-]
    # of the time that is left: a search that is expected to end in half of it goes on [-]
    soon: float = 0.3
    # times what was expected, from which on its turn is over: one of oval21 (9916) went on for 75 s
    worse: float = 3.0
    restarts: int = 8  # processes that are replaced after they have died [-]


@dataclass(frozen=True)
class Shrinking:
    """The same query, smaller."""

    deep: int = 6  # maps of a chain beyond which the 2-norms of errors are computed [-]
    chunk: int = 16 << 20  # bytes: more at once are no faster, and time can be up in between [-]
    products: int = 10**10  # multiplications in one, about a second: then time may be up [-]
    # bytes of columns that go forward at once on a CPU: 64 channels take 0.20 s convolved in
    # parts of 1 MB, and 0.45 s of 8 MB and more, which ask for new memory each time
    pushed: int = 1 << 20
    # Inputs that move, up to which forms go forward: seconds of these | of rows back are 0.7 | 45
    columns: int = 256  # on cgan (5 inputs), 3 | 28 on biasfield (16), 0.1 | 0.05 on metaroom (157)
    rounded_away: float = 1e-6  # part of two weights that cancel, left by rounding [v 0.98 1.02]


@dataclass(frozen=True)
class Common:
    """Numbers that are the same under every strategy: processors and people decide them."""

    usual: float = 600.0  # seconds of which a share is taken where no limit is given
    stalled: float = 3.0  # seconds without a byte after which a process counts as stopped
    patience: float = 4.0  # times as long as a part takes here, before another's is done here too
    certify_share: float = 0.95  # of a point's time for its search; the rest is for an attack
    cached: int = 32 << 20  # bytes of a backward pass on a CPU: more rows at once were slower
    cached_windows: int = 8 << 20  # the same of rows that are patches
    # of an ascent, an attack, or rows at one place of a convolution, on a CPU: with 4 GB
    # a batch on yolo_2023 ended 21 s after its deadline, and a place of a VGG (64 x 64) 22 s
    ascents: int = 512 << 20
    window: float = 0.6  # of a plane: larger patches are no faster than rows over all of it
    sparse: float = 0.1  # part of a matrix's entries that are not 0, up to which compression pays
    sparse_from: int = 50_000  # entries, below which a dense product takes no time worth saving
    sparse_vectors: int = 64  # in one product with such a matrix; many more at once were slower


COMMON = Common()


@dataclass(frozen=True)
class Strategy:
    """All of them."""

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
