"""Odd sources, sizes and guarantees are refused in a sentence."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from incrowd import noise, privacy
from incrowd.errors import InvalidInput

ODD = [
    Decimal("0.5"),
    np.float64(0.5),
    np.array([0.5]),
    10**400,
    float("nan"),
    1,
    "x",
    b"x",
    [1],
    {},
    object(),
    float,
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_what_gives_no_bits_is_no_source(odd: Any) -> None:
    for draw in (
        lambda: noise.discrete_laplace(1, source=odd),
        lambda: noise.discrete_gaussian(1, source=odd),
        lambda: noise.bernoulli(0.5, source=odd),
        lambda: noise.bernoulli_exp(0.5, source=odd),
        lambda: noise.uniform(10, source=odd),
    ):
        with pytest.raises(InvalidInput, match="source must be a source of random bits"):
            draw()


@pytest.mark.parametrize("size", [2**63, 10**400, (2**30, 2**30)])
def test_a_size_beyond_all_memory_is_refused(size: Any) -> None:
    with pytest.raises(InvalidInput, match="more than any memory holds"):
        noise.discrete_laplace(1, size)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_what_is_no_guarantee_is_not_amplified(odd: Any) -> None:
    for amplify in (
        lambda: privacy.poisson(odd, 0.5),
        lambda: privacy.without_replacement(odd, 1, 2),
        lambda: privacy.shuffled(odd, 10, 1e-6),
        lambda: privacy.compare(odd),
    ):
        with pytest.raises(InvalidInput, match="guarantee must be a guarantee"):
            amplify()
