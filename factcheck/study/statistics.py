"""Estimates and intervals of the study, as pure functions.

Proportions get Wilson's interval; means over pairs get a percentile interval from a bootstrap that resamples clusters
(questions), because pairs about one question are not independent. The outcome of a pair is 1 (the correct text is
preferred), 1/2 (no difference) or 0, so that the mean is the paired AUROC, (W + T/2) / (W + T + L).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from factcheck.errors import MissingExtraError

Z95 = 1.959964
RESAMPLES = 10_000
_CELLS = 2_000_000

Interval = tuple[float, float]


class Sampling(NamedTuple):
    """Hold how a bootstrap draws."""

    resamples: int = RESAMPLES
    seed: int = 0


def numpy() -> Any:
    """Import numpy, or raise MissingExtraError."""
    try:
        import numpy
    except ImportError as error:
        raise MissingExtraError("The study's bootstrap", "numpy", "local") from error
    return numpy


def wilson(k: int, n: int, z: float = Z95) -> Interval | None:
    """Return Wilson's score interval for ``k`` of ``n``, inside [0, 1]; None for ``n`` = 0.

    Wilson (1927), J. Am. Stat. Assoc. 22:209. ``z`` is the normal quantile, by default for 95 %.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no proportion")
    if n == 0:
        return None
    p, z2 = k / n, z * z
    centre = p + z2 / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    # The bounds at 0 and n are 0 and 1 exactly; rounding would leave them a hair inside or outside.
    low = 0.0 if k == 0 else (centre - spread) / scale
    high = 1.0 if k == n else (centre + spread) / scale
    return max(0.0, low), min(1.0, high)


def compare(preferred: float, other: float) -> float:
    """Return 1 if ``preferred`` is higher, 1/2 if the two are equal, else 0."""
    return 1.0 if preferred > other else 0.5 if preferred == other else 0.0


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return math.fsum(values) / len(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n - 1), None for fewer than two values."""
    centre = mean(values)
    if centre is None or len(values) < 2:
        return None
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def mean_of_clusters(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Return the mean over clusters of the mean in each: every question weighs the same; None of nothing."""
    groups: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    return mean([math.fsum(group) / len(group) for group in groups.values()])


def mann_whitney(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Return the AUROC of two unpaired samples: how often a positive is above a negative, ties half; None if empty."""
    if not positive or not negative:
        return None
    ordered = sorted([(value, 0) for value in negative] + [(value, 1) for value in positive])
    wins, below, start = 0.0, 0, 0
    while start < len(ordered):
        end = start
        counts = [0, 0]
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            counts[ordered[end][1]] += 1
            end += 1
        wins += counts[1] * (below + counts[0] / 2)
        below += counts[0]
        start = end
    return wins / (len(positive) * len(negative))


def resamples_of(n: int, sampling: Sampling) -> Iterator[Any]:
    """Yield blocks of rows; each row counts how often each of ``n`` clusters is drawn in ``n`` draws with replacement.

    The same arguments give the same rows, so that estimates on the same clusters share their resamples.
    """
    np = numpy()
    generator = np.random.Generator(np.random.PCG64(sampling.seed))
    rows = max(1, _CELLS // n)
    for start in range(0, sampling.resamples, rows):
        size = min(rows, sampling.resamples - start)
        drawn = generator.integers(0, n, size=(size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(float)


def percentiles(samples: Any) -> Interval:
    """Return the 2.5th and 97.5th percentiles, interpolated linearly."""
    low, high = numpy().quantile(samples, [0.025, 0.975])
    return float(low), float(high)


def bootstrap_means(
    columns: Sequence[Sequence[float]], clusters: Sequence[str], sampling: Sampling, *, by_cluster: bool = False
) -> list[Any] | None:
    """Return resampled means, one array a column, row by row on the same resamples; None with fewer than two clusters.

    Each column holds one value a pair. ``by_cluster`` gives every drawn cluster the same weight, else every pair.
    """
    names, sums, sizes = _cluster_sums(columns, clusters)
    if len(names) < 2:
        return None
    np = numpy()
    if by_cluster:
        sums, sizes = sums / sizes[:, None], np.ones(len(names))
    blocks = [(weights @ sums) / (weights @ sizes)[:, None] for weights in resamples_of(len(names), sampling)]
    return list(np.concatenate(blocks).T)


def bootstrap_mean_interval(
    values: Sequence[float], clusters: Sequence[str], sampling: Sampling, *, by_cluster: bool = False
) -> Interval | None:
    """Return the percentile interval of the mean; None with fewer than two clusters."""
    columns = bootstrap_means([values], clusters, sampling, by_cluster=by_cluster)
    return None if columns is None else percentiles(columns[0])


def bootstrap_mann_whitney_interval(
    positive: Sequence[float], negative: Sequence[float], clusters: Sequence[str], sampling: Sampling
) -> Interval | None:
    """Return the percentile interval of the unpaired AUROC, where pair i gives ``positive[i]`` and ``negative[i]``."""
    names, _, sizes = _cluster_sums([], clusters)
    if len(names) < 2:
        return None
    np = numpy()
    order = np.argsort([names[cluster] for cluster in clusters], kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    above = np.asarray(positive, float)[order][:, None] - np.asarray(negative, float)[order][None, :]
    # wins summed over the pairs of two clusters; a resample's AUROC is then a quadratic form in its weights.
    kernel = np.add.reduceat(np.add.reduceat((np.sign(above) + 1) / 2, starts, axis=1), starts, axis=0)
    blocks = [
        ((weights @ kernel) * weights).sum(axis=1) / (weights @ sizes) ** 2
        for weights in resamples_of(len(names), sampling)
    ]
    return percentiles(np.concatenate(blocks))


def _cluster_sums(columns: Sequence[Sequence[float]], clusters: Sequence[str]) -> tuple[dict[str, int], Any, Any]:
    """Sum the columns by cluster, in the order of the names, so that the order of the pairs does not matter."""
    np = numpy()
    names = {name: index for index, name in enumerate(sorted(set(clusters)))}
    sums, sizes = np.zeros((len(names), len(columns))), np.zeros(len(names))
    for row, cluster in enumerate(clusters):
        sizes[names[cluster]] += 1
        for column, values in enumerate(columns):
            sums[names[cluster], column] += values[row]
    return names, sums, sizes
