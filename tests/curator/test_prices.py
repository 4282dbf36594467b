"""What a line of a price states, and the mechanism that keeps it."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from incrowd.curator.prices import Line, LineKind, Noise
from incrowd.curator.quantiles import DRAWN, DRAWN_AND_KEPT
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Gaussian, Laplace
from incrowd.privacy import approximate, bounded_range, compose, gaussian, laplace, threshold


def test_each_line_states_the_event_of_its_noise() -> None:
    third, small = Fraction(1, 3), Fraction(1, 10**6)

    def line(kind: LineKind, noise: Noise, **values: object) -> Line:
        return Line(0, kind, "a", "a", noise, **values)  # type: ignore[arg-type]

    assert line("sum", "laplace", epsilon=third).guarantee == laplace(third, 1024)
    assert line("census", "laplace", epsilon=third).guarantee == laplace(third, 1)
    assert line("totals", "laplace", epsilon=third).guarantee == laplace(third, 1)
    keys = line("keys", "laplace", epsilon=third, delta=small)
    assert keys.guarantee == laplace(third, 1024) + threshold(small)
    drawn = [bounded_range(third * share) for share in (Fraction(2, 5), Fraction(1, 10), Fraction(1, 2))]
    assert line("centre", "exponential", epsilon=third).guarantee == compose(*drawn)
    assert line("sum", "gaussian", mu=0.5).guarantee == gaussian(0.5)
    assert line("keys", "gaussian", mu=0.5, delta=small).guarantee == gaussian(0.5) + threshold(small)
    assert line("keys", "selection", epsilon=third, delta=small).guarantee == approximate(third, small)
    counts = line("sum", "thresholded", epsilon=third, mu=0.1, delta=small)
    assert counts.guarantee == approximate(third, small) and counts.threshold_delta == small / 2
    # Half of it draws the point, and a window around it gets the rest, or shares it with a tree.
    point = line("quantile", "exponential", epsilon=third, levels=4, shares=DRAWN)
    assert point.guarantee == bounded_range(third / 2) + laplace(third / 2, 1024)
    point = line("quantile", "exponential", epsilon=third, levels=4, shares=DRAWN_AND_KEPT)
    tree = laplace(third / 5 / 4, 1024) * 4
    assert point.guarantee == bounded_range(third / 2) + laplace(third * 3 / 10, 1024) + tree
    assert line("quantile", "laplace", epsilon=third, levels=4).guarantee == laplace(third / 4, 1024) * 4


@pytest.mark.parametrize(
    ("steps", "distance", "sensitivity"), [(1024, 1, 1024), (1025, 1, 2048), (1000, 2, 2048)]
)
def test_laplace_noise_covers_whole_chains(steps: int, distance: int, sensitivity: int) -> None:
    measure = SimpleNamespace(sensitivity_steps=steps, norm=1)
    mechanism = Line(0, "sum", "a", "a", "laplace", Fraction(1, 3)).mechanism(measure, distance)  # type: ignore[arg-type]
    assert isinstance(mechanism, Laplace)
    assert mechanism == Laplace(Fraction(1, 3), sensitivity=sensitivity)


def test_gaussian_noise_is_a_little_wider_than_its_mu() -> None:
    measure = SimpleNamespace(sensitivity_steps=2**30, norm=2)
    mechanism = Line(0, "sum", "a", "a", "gaussian", mu=0.25).mechanism(measure, 2)  # type: ignore[arg-type]
    assert mechanism == Gaussian(scale=Fraction(2**33) * (1 + Fraction(1, 2**26)), sensitivity=2**31)
    with pytest.raises(InvalidInput, match="Gaussian noise only"):
        Line(0, "sum", "a", "a", "laplace", Fraction(1)).mechanism(measure, 1)  # type: ignore[arg-type]
