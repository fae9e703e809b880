import random
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factcheck.errors import MissingExtraError
from factcheck.study import statistics as stats
from factcheck.study.statistics import Sampling

# Counts and intervals (per cent, z = 1.96) as published for claim-level checks of 380 pairs, and the edges.
WILSON = [
    (337, 380, 88.7, 85.1, 91.5),
    (295, 337, 87.5, 83.6, 90.6),
    (210, 380, 55.3, 50.2, 60.2),
    (295, 380, 77.6, 73.2, 81.5),
    (0, 10, 0.0, 0.0, 27.8),
    (10, 10, 100.0, 72.2, 100.0),
    (1, 1, 100.0, 20.7, 100.0),
    (0, 1, 0.0, 0.0, 79.3),
]
outcomes = st.sampled_from([0.0, 0.5, 1.0])
risks = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]), min_size=1, max_size=30)


def of_counts(win, tie, loss):
    return [1.0] * win + [0.5] * tie + [0.0] * loss


@pytest.mark.parametrize(("k", "n", "rate", "low", "high"), WILSON)
def test_wilson_golden(k, n, rate, low, high):
    interval = stats.wilson(k, n)
    assert round(100 * k / n, 1) == rate
    assert [round(100 * bound, 1) for bound in interval] == [low, high]


def test_wilson_reaches_the_ends_exactly():
    for n in range(1, 500):
        assert stats.wilson(0, n)[0] == 0.0
        assert stats.wilson(n, n)[1] == 1.0


def test_wilson_of_nothing_is_undefined():
    assert stats.wilson(0, 0) is None


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3), (1, 0)])
def test_wilson_refuses_what_is_no_proportion(k, n):
    with pytest.raises(ValueError, match="no proportion"):
        stats.wilson(k, n)


@given(st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_rate_and_stays_inside(counts):
    k, n = counts
    low, high = stats.wilson(k, n)
    assert 0.0 <= low <= k / n <= high <= 1.0
    mirrored = stats.wilson(n - k, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_paired_auroc_golden():
    assert stats.mean(of_counts(151, 7, 37)) == pytest.approx(0.7923, abs=5e-5)
    assert stats.mean(of_counts(91, 76, 28)) == pytest.approx(0.6615, abs=5e-5)
    assert stats.mean(of_counts(311, 577, 112)) == pytest.approx(0.599, abs=1e-3)
    delta = stats.mean(of_counts(91, 76, 28)) - stats.mean(of_counts(151, 7, 37))
    assert delta == pytest.approx(-0.1308, abs=5e-5)


def test_two_estimands():
    values, clusters = [1.0, 1.0, 0.5, 0.0], ["q1", "q1", "q1", "q2"]
    assert stats.mean(values) == 0.625
    assert stats.mean_of_clusters(values, clusters) == pytest.approx(0.4167, abs=5e-5)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_binary_criterion_has_the_auroc_that_its_rates_give(pairs):
    value = stats.mean([stats.compare(found, wrong) for found, wrong in pairs])
    tpr = sum(found for found, _ in pairs) / len(pairs)
    fpr = sum(wrong for _, wrong in pairs) / len(pairs)
    assert value == pytest.approx(0.5 + (tpr - fpr) / 2)


def test_mean_and_deviation():
    assert stats.mean([]) is None
    assert stats.deviation([3.0]) is None
    assert stats.deviation([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) == pytest.approx((32 / 7) ** 0.5)
    assert stats.mean_of_clusters([], []) is None


@given(risks, risks)
def test_mann_whitney_is_the_naive_loop(positive, negative):
    naive = sum(stats.compare(a, b) for a in positive for b in negative) / (len(positive) * len(negative))
    assert stats.mann_whitney(positive, negative) == pytest.approx(naive)
    assert stats.mann_whitney(negative, positive) == pytest.approx(1 - naive)


def test_mann_whitney_of_nothing_is_undefined():
    assert stats.mann_whitney([], [0.1]) is None
    assert stats.mann_whitney([0.1], []) is None


def test_without_numpy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtraError, match=r"factcheck\[local\]"):
        stats.bootstrap_mean_interval([1.0, 0.0], ["a", "b"], Sampling())


class TestBootstrap:
    """The bootstrap needs numpy; what is compared with it is written without."""

    @pytest.fixture(autouse=True)
    def _numpy(self):
        self.np = pytest.importorskip("numpy")

    def drawn(self, n, sampling):
        generator = self.np.random.Generator(self.np.random.PCG64(sampling.seed))
        return [[int(i) for i in generator.integers(0, n, size=n)] for _ in range(sampling.resamples)]

    def percentile(self, samples, share):
        ordered = sorted(samples)
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    @pytest.mark.parametrize("by_cluster", [False, True])
    def test_mean_is_the_slow_loop(self, by_cluster):
        generator = random.Random(5)
        clusters = [f"q{generator.randrange(9)}" for _ in range(40)]
        values = [generator.choice([0.0, 0.5, 1.0]) for _ in clusters]
        sampling = Sampling(400, 11)
        names = sorted(set(clusters))
        samples = []
        for row in self.drawn(len(names), sampling):
            groups = [[v for v, c in zip(values, clusters, strict=True) if c == names[i]] for i in row]
            if by_cluster:
                samples.append(sum(sum(group) / len(group) for group in groups) / len(groups))
            else:
                pooled = [value for group in groups for value in group]
                samples.append(sum(pooled) / len(pooled))
        expected = self.percentile(samples, 0.025), self.percentile(samples, 0.975)
        found = stats.bootstrap_mean_interval(values, clusters, sampling, by_cluster=by_cluster)
        assert found == pytest.approx(expected)

    def test_mann_whitney_is_the_slow_loop(self):
        generator = random.Random(6)
        clusters = [f"q{generator.randrange(7)}" for _ in range(25)]
        positive = [generator.choice([0.1, 0.5, 0.9]) for _ in clusters]
        negative = [generator.choice([0.0, 0.1, 0.5]) for _ in clusters]
        sampling = Sampling(120, 3)
        names = sorted(set(clusters))
        samples = []
        for row in self.drawn(len(names), sampling):
            picked = [j for i in row for j, cluster in enumerate(clusters) if cluster == names[i]]
            wins = sum(stats.compare(positive[a], negative[b]) for a in picked for b in picked)
            samples.append(wins / len(picked) ** 2)
        expected = self.percentile(samples, 0.025), self.percentile(samples, 0.975)
        assert stats.bootstrap_mann_whitney_interval(positive, negative, clusters, sampling) == pytest.approx(expected)

    def test_agrees_with_an_independent_generator(self):
        generator = random.Random(1)
        values = of_counts(30, 40, 10)
        clusters = [f"q{i}" for i in range(80)]
        samples = sorted(sum(generator.choices(values, k=80)) / 80 for _ in range(4000))
        low, high = stats.bootstrap_mean_interval(values, clusters, Sampling(10_000, 0))
        assert low == pytest.approx(samples[100], abs=0.008)
        assert high == pytest.approx(samples[3899], abs=0.008)

    def test_clusters_widen_the_interval(self):
        values = [1.0] * 20 + [0.0] * 20
        alone = stats.bootstrap_mean_interval(values, [f"q{i}" for i in range(40)], Sampling(2000, 0))
        together = stats.bootstrap_mean_interval(values, [f"q{i // 10}" for i in range(40)], Sampling(2000, 0))
        assert together[1] - together[0] > 2 * (alone[1] - alone[0])

    def test_columns_share_their_resamples(self):
        before, after = of_counts(5, 10, 5), of_counts(12, 4, 4)
        clusters = [f"q{i}" for i in range(20)]
        change = [new - old for old, new in zip(before, after, strict=True)]
        one, two, three = stats.bootstrap_means([before, after, change], clusters, Sampling(500, 2))
        assert self.np.allclose(two - one, three)

    def test_blocks_make_no_difference(self, monkeypatch):
        whole = [row.tolist() for block in stats.resamples_of(7, Sampling(50, 4)) for row in block]
        monkeypatch.setattr(stats, "_CELLS", 21)
        parts = [row.tolist() for block in stats.resamples_of(7, Sampling(50, 4)) for row in block]
        assert parts == whole
        assert whole == [[float(Counter(row)[i]) for i in range(7)] for row in self.drawn(7, Sampling(50, 4))]

    @given(st.lists(st.tuples(outcomes, st.sampled_from("abcd")), min_size=2, max_size=25), st.randoms())
    @settings(max_examples=30, deadline=None)
    def test_order_makes_no_difference(self, pairs, generator):
        shuffled = list(pairs)
        generator.shuffle(shuffled)
        intervals = [
            (
                stats.bootstrap_mean_interval([v for v, _ in rows], [c for _, c in rows], Sampling(100, 0)),
                stats.bootstrap_mann_whitney_interval(
                    [v for v, _ in rows], [1 - v for v, _ in rows], [c for _, c in rows], Sampling(100, 0)
                ),
            )
            for rows in (pairs, shuffled)
        ]
        assert intervals[0] == intervals[1]

    def test_one_cluster_has_no_interval(self):
        assert stats.bootstrap_mean_interval([1.0, 0.0], ["a", "a"], Sampling()) is None
        assert stats.bootstrap_mann_whitney_interval([1.0, 0.0], [0.0, 0.0], ["a", "a"], Sampling()) is None
        assert stats.bootstrap_mean_interval([], [], Sampling()) is None
