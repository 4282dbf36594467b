"""Adaptive bounded-range composition between an attainable value and the claimed one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import bounded_range, gaussian, laplace, pure, randomized_response, ranges

F = Fraction


def curve(pair: tuple[np.ndarray, np.ndarray], epsilon: float) -> float:
    loss, mass = pair
    return float(mass @ np.maximum(0.0, -np.expm1(epsilon - loss)))


def test_one_release_reaches_its_formula_and_hardly_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_WORK", 2e4)  # 64 cells
    pair = ranges.worst_pair.__wrapped__(((F(1), 1),))
    assert pair is not None
    for epsilon in (0.0, 0.25, 0.5, 0.75):
        # (1 - exp(-(e - epsilon) / 2))^2 / (1 - exp(-e))
        exact = math.expm1(-(1 - epsilon) / 2) ** 2 / -math.expm1(-1)
        assert exact * (1 - 1e-13) <= curve(pair, epsilon) <= exact * 1.001
    assert pair[1].sum() == pytest.approx(1, abs=1e-9)
    assert pair[1] @ np.exp(-pair[0]) == pytest.approx(1, abs=1e-9)
    assert curve(pair, 1 + 2 / 64) == 0.0


def test_a_step_is_the_best_choice_of_t() -> None:
    spacing, width = 1 / 8, 8
    y = np.exp(spacing * np.arange(-9, 10))
    stepped = ranges._step(np.maximum(0.0, 1 - y), y, width, spacing)
    t = np.linspace(0, 1, 20_001)
    share = (math.e - np.exp(t)) / (math.e - 1)
    # The chords of (1 - y)_+ are exact but for the cell that holds 1, where they lie above it.
    for level, value in zip(y, stepped, strict=True):
        exact = (
            share * np.maximum(0, 1 - level * np.exp(-t))
            + (1 - share) * np.maximum(0, 1 - level * np.exp(1 - t))
        ).max()
        assert exact * (1 - 1e-12) <= value <= min(1.0, exact * 1.02 + 1e-3)
    assert np.all(np.diff(stepped) <= 0)


@pytest.mark.parametrize(
    ("sizes", "spacing", "widths"),
    [
        (((F(1), 1),), 1 / 512, [512]),
        (((F(1), 2), (F(1, 2), 1)), 1 / 1024, [1024, 512]),
        (((F(1), 1), (F(2, 3), 1)), 1 / 768, [768, 512]),
    ],
)
def test_the_grid_holds_each_epsilon_as_whole_spacings(
    sizes: tuple[tuple[Fraction, int], ...], spacing: float, widths: list[int]
) -> None:
    plan = ranges._grid(sizes)
    assert plan is not None
    assert plan[1] == widths
    assert spacing < plan[0] <= spacing * (1 + 1e-14)
    assert all(F(plan[0]) * w >= e for (e, _), w in zip(sizes, plan[1], strict=True))


def test_grids_become_coarser_with_the_work_and_end() -> None:
    # 2 * 512 n cells of 512 choices in n + 1 states: too many from n = 9 on.
    for times, widths in ((8, [512]), (9, [256]), (299, [8])):
        plan = ranges._grid(((F(1), times),))
        assert plan is not None and plan[1] == widths
    assert ranges._grid(((F(1), 300),)) is None
    # Sizes that share no unit are rounded up to whole ones.
    plan = ranges._grid(((F(1), 1), (F(1000003, 999983), 1)))
    assert plan is not None
    spacing, widths = plan
    assert widths == [512, 513]
    assert spacing == pytest.approx(1 / 512)


def test_moments_of_one_release_are_the_worst_over_t() -> None:
    t = np.linspace(0, 0.5, 100_001)
    share = (math.exp(0.5) - np.exp(t)) / math.expm1(0.5)
    for c in (0.5, 2.0, 20.0):
        worst = math.log((share * np.exp(c * t) + (1 - share) * np.exp(c * (t - 0.5))).max())
        cumulant = ranges.cumulant(F(1, 2), np.array([c]))[0]
        assert worst <= cumulant <= worst * (1 + 1e-7) + 1e-12
    # So small that the series is used: e^2 c (c + 1) / 8.
    assert ranges.cumulant(F(1, 1000), np.array([3.0]))[0] == pytest.approx(1e-6 * 12 / 8, rel=1e-6)
    for c in (30.0, 38.0, 39.0, 41.0):
        near = ranges.cumulant(F(1, 1000), np.array([c]))[0]
        assert near == pytest.approx(1e-6 * c * (c + 1) / 8, rel=1e-4)


def attainable(sizes: list[float], spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """What an adversary reaches who only picks t from a grid: a lower bound, exact at grid points."""
    widths = [round(e / spacing) for e in sizes]
    reach = sum(widths) + max(widths)
    e = spacing * np.arange(-reach, reach + 1)
    value = np.maximum(0.0, -np.expm1(e))
    for width, size in zip(widths, sizes, strict=True):
        left = -np.expm1(spacing * np.arange(-reach - width, -reach))
        longer = np.concatenate([left, value, np.zeros(width)])
        best = np.zeros_like(value)
        for t in range(width + 1):
            share = (math.exp(size) - math.exp(t * spacing)) / math.expm1(size)
            low = longer[width - t : width - t + len(value)]
            high = longer[2 * width - t : 2 * width - t + len(value)]
            best = np.maximum(best, share * low + (1 - share) * high)
        value = best
    return e, value


@pytest.mark.parametrize("sizes", [[1.0], [0.5, 0.5], [0.1] * 10, [0.5, 0.25, 0.25], [2.0, 2.0, 2.0]])
def test_the_claim_encloses_what_an_adversary_attains(sizes: list[float]) -> None:
    e, low = attainable(sizes, min(sizes) / 32)
    counts = tuple((Fraction(repr(s)), sizes.count(s)) for s in sorted(set(sizes)))
    pair = ranges.worst_pair(counts)
    assert pair is not None
    loss, mass = pair
    high = np.array([mass @ np.maximum(0.0, -np.expm1(x - loss)) for x in e])
    assert np.all(high >= low - 1e-13)
    inner = (e > 0) & (low > 0.02 * low[len(e) // 2])
    assert np.all(high[inner] <= low[inner] * 1.05)
    assert mass.sum() == pytest.approx(1, abs=1e-9)


def test_real_exponential_mechanisms_chosen_adaptively_stay_within_the_claim() -> None:
    # Utilities of the two data sets, picked anew after the first choice so as to hurt; 3 candidates.
    epsilon = 1.0
    shifts = [np.array(s) for s in itertools.product((-0.5, 0.0, 0.5), repeat=3)]
    base = np.array([0.3, 0.0, -0.4])

    def pair(shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, q = np.exp(base + epsilon * shift / 2), np.exp(base - epsilon * shift / 2)
        return p / p.sum(), q / q.sum()

    for level in (0.1, 0.5, 1.0):

        def second(y: float) -> float:
            return max(float(np.maximum(0.0, p - y * q).sum()) for p, q in map(pair, shifts))

        worst = 0.0
        for p, q in map(pair, shifts):
            worst = max(worst, sum(a * second(math.exp(level) * b / a) for a, b in zip(p, q, strict=True)))
        assert worst <= (bounded_range(epsilon) * 2).delta(level) + 1e-12


def test_the_third_reference_row_is_between_what_is_attained_and_316() -> None:
    rest = laplace(0.05) * 50 + gaussian(1 / 20) * 50 + randomized_response(0.1) * 20
    epsilon = (rest + bounded_range(0.1) * 10).epsilon(1e-6)
    assert epsilon <= 3.16
    assert (rest + pure(0.1) * 10).epsilon(1e-6) == pytest.approx(3.40606, abs=1e-5)
    # The attained curve, as a pair, beside the same rest: its delta at the claimed epsilon is near 1e-6.
    e, low = attainable([0.1] * 10, 0.1 / 16)
    y = np.exp(e)
    slope = np.append(np.diff(low, prepend=1.0) / np.diff(y, prepend=0.0), 0.0)
    mass = np.diff(slope) * y
    kept = np.flatnonzero(mass > 1e-9)[::4]
    logs = [math.log(rest.delta(epsilon - x)) for x in e[kept]]
    total = float(mass @ np.exp(np.interp(e, e[kept], logs)))
    assert 0.95e-6 < total < 1.02e-6


def test_too_many_choices_fall_back_to_pure() -> None:
    many = bounded_range(0.001) * 100_000
    assert ranges.worst_pair(((Fraction(1, 1000), 100_000),)) is None
    assert many.epsilon(1e-6) <= (pure(0.001) * 100_000).epsilon(1e-6)


def test_one_choice_is_tighter_than_pure_and_ordered_in_epsilon() -> None:
    one = bounded_range(1.0)
    assert one.delta(0.3) < pure(1.0).delta(0.3)
    assert one.epsilon() == 1.0
    assert bounded_range(0.9).delta(0.3) <= one.delta(0.3)
