"""Every number that tunes the search.

None of them decides what counts as a proof: any strategy gives sound answers, some sooner than
others. A function takes the part of the strategy that it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Descent:
    """Projected gradient descent with momentum towards every disjunct at once."""

    restarts: int = 1  # starts per disjunct; the first is the centre
    steps: int = 10
    first_step: float = 0.5  # as a part of the domain's size
    last_step: float = 0.02
    momentum: float = 0.7
    near: float = 1e-4  # distance to the unsafe set, relative to g, worth a run of onnxruntime
    single_from: int = 1000  # inputs from which on float32 is faster
    seed: int = 0  # of the random starts: the user's, not tuned


@dataclass(frozen=True)
class Projected:
    """The minimum-norm attack by projections onto decision boundaries (FAB)."""

    steps: int = 40
    bias: float = 0.1  # greatest weight of the centre's projection in a step
    overshoot: float = 1.05  # of a step towards the boundary
    back: float = 0.95  # factor of the distance after the boundary was crossed
    kept: int = 2  # points that are polished
    starts: int = 32  # at least, and four for each class
    active: int = 6  # rounds of an active set, for a projection in a box


@dataclass(frozen=True)
class Decoupled:
    """The minimum-norm attack that moves length and direction separately (DDN, FMN).

    Of a pair, the first value holds at the first step and the second at the last, with half a
    cosine in between.
    """

    steps: int = 20
    length: tuple[float, float] = (1.0, 0.01)  # of a step, in radii
    change: tuple[float, float] = (0.05, 0.001)  # of the radius, in radii
    share: float = 0.5  # of the starts
    kept: int = 4  # points that are polished


@dataclass(frozen=True)
class Polish:
    """Moving the points that minimum-norm attacks found nearer, along their boundaries."""

    count: int = 6  # points
    rounds: int = 12
    bisections: tuple[int, int] = (14, 40)  # of a ray: in a round, and at the end
    shares: tuple[float, ...] = (1.0, 0.5, 0.2, 0.05)  # of the way along the boundary
    offered: int = 3  # of the points, to the network itself


@dataclass(frozen=True)
class Attack:
    """Attacks: looking for counterexamples by gradients."""

    quick: Descent = Descent(restarts=1, steps=6)  # before any bound
    long: Descent = Descent(restarts=8, steps=25)  # where plain bounds leave the query open
    in_boxes: Descent = Descent(steps=12, first_step=0.1, last_step=0.002)  # from their centres
    box_batches: int = 8  # batches of boxes between two such attacks
    projected: Projected = Projected()
    decoupled: Decoupled = Decoupled()
    polish: Polish = Polish()


@dataclass(frozen=True)
class Ascent:
    """Gradient ascent on the slopes and multipliers of linear bounds."""

    steps: int = 20
    rate: float = 0.3
    decay: float = 0.95  # of the rate, per step
    beta_rate: float = 0.1  # of multipliers, relative to the mean coefficient of the layer
    storable: bool = False  # the result is rounded to what a certificate holds


@dataclass(frozen=True)
class Slopes:
    """How much is spent on the slopes of linear bounds."""

    rows: Ascent = Ascent(steps=20, rate=0.3, decay=0.95)  # output rows and hidden neurons
    bundles: Ascent = Ascent(steps=12, rate=0.2, decay=0.9, beta_rate=0.5)
    regions: Ascent = Ascent(steps=300, rate=0.2, decay=0.99)  # that a certificate has to hold
    entries: int = 2_000_000  # optimised at once
    forward_factor: int = 40  # forward forms are used where backward passes cost so much more

    def storable(self) -> Slopes:
        """The same, with results that a certificate can hold."""
        rows, bundles = (replace(part, storable=True) for part in (self.rows, self.bundles))
        return replace(self, rows=rows, bundles=bundles)


@dataclass(frozen=True)
class Projections:
    """Steps of alternating projections on regions that one projection leaves open."""

    quick: int = 60  # when the walk meets a boundary; the rest waits until the queue is empty
    long: int = 4000  # for the boundaries that have waited
    leaf: int = 2000  # for a bundle with nothing left open
    before_program: int = 200  # where a linear or conic program comes after them
    nearest: tuple[int, ...] = (400, 4000)  # towards the nearest point: at first, and then
    look: int = 20  # steps between two looks at what has been reached
    clip_inputs: int = 200  # inputs up to which a clip box is written as half-spaces


@dataclass(frozen=True)
class Programs:
    """Primal and dual steps on the linear programs of regions."""

    steps: int = 6000
    look: int = 50  # steps between two looks at what has been reached
    restart: int = 4  # looks between two restarts from the mean


@dataclass(frozen=True)
class Batch:
    """How many regions are explored at once."""

    most: int
    workspace: int  # numbers that their forms may take
    least: int = 1  # whatever they take


@dataclass(frozen=True)
class Table:
    """The hash table of the regions that were seen."""

    slots: int = 1 << 12  # at first
    few: int = 256  # patterns up to which a plain set is quicker
    large: int = 1 << 22  # slots from which on it grows by a factor of 2 instead of 4


@dataclass(frozen=True)
class Walk:
    """The walk from region to region."""

    breadth: Batch = Batch(most=4096, workspace=1 << 20, least=16)  # regions, breadth first
    nearest: Batch = Batch(most=256, workspace=1 << 18)  # regions, nearest first
    overshoots: tuple[float, ...] = (1.0, 1.0 + 1e-6, 1.0 + 1e-3)  # to get across in float32
    waiting: int = 256  # boundaries that wait at most
    few_neurons: int = 6  # unstable neurons up to which the walk comes first in `verify`
    patience: int = 50_000  # regions that `certify` walks before it searches bundles
    boundaries: int = 32  # that are settled at once, nearest first
    table: Table = Table()


@dataclass(frozen=True)
class Neurons:
    """Splits of neurons."""

    batch: int = 256  # bundles that are bounded at once
    candidates: int = 3  # neurons whose halves are looked at before one is chosen
    most: int | None = None  # bundles after which the search gives up
    trial: int | None = None  # bundles after which it gives up where hardly any is closed
    hardly: float = 0.8  # part of the leaves that is still open where hardly any is closed
    short_share: float = 0.25  # of the time, at most, for the first, short search


@dataclass(frozen=True)
class Hidden:
    """Bounds of hidden neurons, over the whole domain and over what is left of it."""

    refine_share: float = 0.2  # of the time, at most, for slopes of hidden layers
    rounds: int = 8  # splits of each hidden neuron, doubled as long as that makes some stable
    share: float = 0.75  # of the time, at most, for splits of hidden neurons
    trial_share: float = 0.2  # the same where better slopes have made hardly any neuron stable
    worth: float = 0.97  # part of the unstable neurons that is left where tighter bounds have paid
    small: int = 160  # neurons up to which hidden bounds are made anew for each bundle of a cap
    rise: float = 0.05  # of the radius: beyond `small`, where the level has risen so much


@dataclass(frozen=True)
class Inputs:
    """Splits of inputs."""

    batch: int = 256  # boxes that are bounded at once
    few: int = 16  # inputs seen by a neuron, up to which inputs are split first
    many: int = 1000  # inputs from which on they are not, however few of them a neuron sees
    some: int = 64  # inputs up to which splitting them gets a turn
    share: float = 0.4  # of the time, at most, for that turn
    # Of the time for values of networks of few inputs: 3 of 5 networks with 100 neurons and 3 to 8
    # inputs were done in 1 to 3 s by boxes, and not in 6 s by neurons.
    value_share: float = 0.8
    mixing: int = 16  # rounds of weighing the rows of a conjunction against each other
    small: float = 2.0**-10  # part of the root's sides, from which on a box may be walked through
    smallest: float = 2.0**-20  # and from which on it is, whatever is unstable in it
    unstable: int = 6  # neurons, up to which a small box is walked through


@dataclass(frozen=True)
class Radius:
    """The search for the distance to the nearest counterexample."""

    rough: float = 0.1  # relative, how closely the radius of plain bounds is found before a search
    fine: float = 1e-3  # and where a search does not end soon
    # Shares of the time, and the part of the tree that has to be closed by then: a proof at the
    # goal that has less does not look as if it would end.
    promising: tuple[tuple[float, float], ...] = ((0.1, 1e-3), (0.4, 0.15), (0.7, 0.75))
    grow_share: float = 0.05  # of the time, for a radius that is tried first
    step: float = 1.3  # factor from the largest radius that is proved to the next one
    close: float = 1.1  # factor at which the least unproved radius goes on
    kept: int = 20_000  # closed bundles that are handed on to the next radius
    usual: float = 60.0  # seconds to share out where no limit is given
    attack_share: float = 0.4  # of the time, at most, for attacks
    least: float = 1 / 64  # part of the goal from which on the radius grows
    # Factors by which a point is moved on, until float32 sees it on the other side.
    overshoots: tuple[float, ...] = (0.0, 1e-7, 3e-7, 1e-6, 1e-5, 1e-4, 1e-3)


@dataclass(frozen=True)
class Shrinking:
    """The same query, smaller."""

    deep: int = 6  # maps of a chain beyond which the 2-norms of errors are computed
    chunk: int = 16 << 20  # bytes: more at once are no faster, and time can be up in between
    rounded_away: float = 1e-6  # of two weights that cancel: a sum that only rounding has left


@dataclass(frozen=True)
class Strategy:
    """All of them."""

    attack: Attack = Attack()
    shrinking: Shrinking = Shrinking()
    slopes: Slopes = Slopes()
    projections: Projections = Projections()
    programs: Programs = Programs()
    walk: Walk = Walk()
    neurons: Neurons = Neurons()
    short: Neurons = Neurons(most=2000, trial=300)  # the first search
    hidden: Hidden = Hidden()
    inputs: Inputs = Inputs()
    radius: Radius = Radius()
