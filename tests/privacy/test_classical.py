from __future__ import annotations

import math

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    Guarantee,
    bounded_range,
    compare,
    gaussian,
    laplace,
    pure,
    randomized_response,
    threshold,
)

MIXED = laplace(0.05) * 50 + gaussian(1 / 20) * 50 + bounded_range(0.1) * 10 + randomized_response(0.1) * 20


def figures(plan: Guarantee, delta: float = 1e-6) -> dict[str, float]:
    return {row.method: row.epsilon for row in compare(plan, delta)}


def test_the_columns_of_the_reference_rows() -> None:
    first = figures(laplace(0.01) * 1000)
    assert first == pytest.approx(
        {"basic": 10, "advanced": 1.763, "optimal homogeneous": 1.3654, "zCDP": 1.469, "exact": 1.36292},
        rel=3e-4,
    )
    second = figures(gaussian(0.1) * 100)
    assert second["zCDP"] == pytest.approx(5.2215, abs=1e-4)
    assert second["basic"] == pytest.approx(49.3, abs=0.05)
    assert second["advanced"] == pytest.approx(59.6, rel=0.01)
    assert second["optimal homogeneous"] == pytest.approx(34.1, rel=0.01)


@pytest.mark.parametrize("plan", [pure(1.0), MIXED, laplace(0.3) * 7 + threshold(1e-8), Guarantee()])
def test_the_exact_figure_is_never_above_another(plan: Guarantee) -> None:
    found = figures(plan)
    assert all(found["exact"] <= value * (1 + 1e-9) for value in found.values())


def test_more_delta_than_there_is_leaves_no_answer() -> None:
    assert all(math.isinf(value) for value in figures(pure(1.0) + threshold(1e-3)).values())
    for delta in (0.0, 1.0):
        with pytest.raises(InvalidInput, match="between 0 and 1"):
            compare(pure(1.0), delta)
