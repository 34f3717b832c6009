"""The published results that ours are compared with.

Aymeric Fromherz, Klas Leino, Matt Fredrikson, Bryan Parno, Corina Pasareanu: Fast Geometric
Projections for Local Robustness Certification. ICLR 2021. Tables 1 (full queue against first
boundary), 2a (l2, epsilon 0.25) and 3 (l-infinity, epsilon 0.01); 100 points, 120 s each, on an
Intel Core i7-7700K with a Tesla K80. Table 2b: certified lower bounds of the l2 radius, 60 s each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Median seconds (None: above 120) and the number of points of each kind."""

    seconds: float | None
    robust: int
    not_robust: int
    unknown: int
    timeout: int
    vra: float | None = None

    def __str__(self) -> str:
        time = ">120" if self.seconds is None else f"{self.seconds:g}"
        counts = f"{self.robust}/{self.not_robust}/{self.unknown}/{self.timeout}"
        return f"{counts}, {time} s" + ("" if self.vra is None else f", VRA {self.vra:.2f}")


@dataclass(frozen=True)
class PaperNetwork:
    """The points that a network is measured on, and the published results."""

    data: str
    l2: dict[str, Published]
    vra_upper_bound: float
    linf: dict[str, Published]
    first_boundary: tuple[float, int] | None = None  # seconds, unknown


NETWORKS = {
    "mnist20x3": PaperNetwork(
        "mnist100",
        {
            "FGP": Published(0.012, 87, 8, 4, 1, 0.82),
            "GeoCert": Published(10.99, 82, 9, 0, 9, 0.77),
            "MIP": Published(97.02, 58, 9, 0, 33, 0.54),
        },
        0.84,
        {
            "FGP": Published(0.004, 94, 0, 6, 0),
            "ERAN+MIP": Published(0.017, 95, 5, 0, 0),
            "GeoCert": Published(0.360, 95, 5, 0, 0),
        },
        (0.012, 7),
    ),
    "mnist20x6": PaperNetwork(
        "mnist100",
        {
            "FGP": Published(0.174, 79, 9, 5, 7, 0.74),
            "GeoCert": Published(78.93, 49, 9, 0, 42, 0.44),
            "MIP": Published(None, 0, 0, 0, 100, 0.0),
        },
        0.85,
        {
            "FGP": Published(0.016, 95, 0, 4, 1),
            "ERAN+MIP": Published(0.054, 97, 3, 0, 0),
            "GeoCert": Published(0.988, 97, 3, 0, 0),
        },
        (0.177, 8),
    ),
    "mnist20x9": PaperNetwork(
        "mnist100",
        {
            "FGP": Published(7.389, 44, 16, 3, 37, 0.42),
            "GeoCert": Published(None, 10, 10, 0, 80, 0.10),
            "MIP": Published(None, 0, 0, 0, 100, 0.0),
        },
        0.82,
        {
            "FGP": Published(0.021, 84, 4, 8, 4),
            "ERAN+MIP": Published(0.080, 92, 8, 0, 0),
            "GeoCert": Published(2.799, 89, 8, 0, 3),
        },
        (4.897, 16),
    ),
    "mnist40x3": PaperNetwork(
        "mnist100",
        {
            "FGP": Published(6.712, 54, 6, 3, 37, 0.51),
            "GeoCert": Published(None, 16, 11, 0, 73, 0.16),
            "MIP": Published(None, 0, 0, 0, 100, 0.0),
        },
        0.89,
        {
            "FGP": Published(0.094, 91, 2, 5, 2),
            "ERAN+MIP": Published(0.040, 96, 4, 0, 0),
            "GeoCert": Published(2.843, 94, 4, 0, 2),
        },
        (5.417, 9),
    ),
    "fmnist200x4-mmr": PaperNetwork(
        "fmnist100",
        {
            "FGP": Published(0.025, 81, 14, 4, 1, 0.73),
            "GeoCert": Published(54.85, 45, 14, 0, 41, 0.41),
            "MIP": Published(None, 0, 0, 0, 100, 0.0),
        },
        0.76,
        {},
    ),
    "fmnist200x6-mmr": PaperNetwork(
        "fmnist100",
        {
            "FGP": Published(0.087, 66, 12, 3, 19, 0.60),
            "GeoCert": Published(None, 28, 5, 0, 67, 0.26),
            "MIP": Published(None, 0, 0, 0, 100, 0.0),
        },
        0.75,
        {},
    ),
    "fmnist100x20-mmr": PaperNetwork(
        "fmnist100",
        {
            "FGP": Published(0.057, 86, 7, 7, 0, 0.61),
            "GeoCert": Published(None, 42, 8, 0, 50, 0.37),
            "MIP": Published(None, 0, 0, 0, 100, 0.0),
        },
        0.66,
        {},
    ),
}


@dataclass(frozen=True)
class PublishedBounds:
    """A row of Table 2b; the median is over points, of the ratio of FastLin's bound to FGP's."""

    fgp_mean: float
    fastlin_mean: float
    median_ratio: float


LOWER_BOUNDS = {  # by the hidden layers of the network, trained on Fashion-MNIST
    "500x4": PublishedBounds(0.124, 0.078, 0.329),
    "500x5": PublishedBounds(0.134, 0.092, 0.693),
    "1000x3": PublishedBounds(0.083, 0.021, 0.035),
}
