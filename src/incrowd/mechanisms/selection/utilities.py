"""What the selection mechanisms share: candidates with utilities, and how far these move.

The utility u_i of candidate i says how good it is on the data at hand; its sensitivity is the most that any
one utility moves between neighbours. Utilities are *monotone* when one person's arrival moves them all in
the same direction (all up or all down, counts for example); then half the noise gives the same guarantee.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import (
    InvalidInput,
)
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import amount, positive
from incrowd.noise.arguments import as_float
from incrowd.noise.readings import Number

MOST = 2**63 - 1
WIDEST = 2.0**1022  # so that no difference overflows


def candidates(utilities: Any, owner: str) -> NDArray[Any]:
    """The utilities as a vector of integers or of floats, at least one.

    Integers are clamped to 64 bits and floats to 2^1022 in size, which moves no two utilities of one
    candidate further apart; NaN counts as 0. Whether they are integers or floats is the program's to decide.
    """
    if isinstance(utilities, np.ma.MaskedArray):
        raise InvalidInput(f"The utilities given to {owner} are a masked array; fill its gaps first.")
    try:
        array = np.asarray(utilities)
    except (ValueError, TypeError, OverflowError):
        raise InvalidInput(f"The utilities given to {owner} must be one list of numbers.") from None
    if array.ndim != 1:
        raise InvalidInput(f"The utilities given to {owner} must be one list of numbers, one per candidate.")
    if array.size == 0:
        raise InvalidInput(f"{owner} needs at least one candidate, but the list of utilities is empty.")
    if array.dtype.kind in "fO" and not isinstance(utilities, np.ndarray):
        # Lists of integers from 2^63 on arrive as floats or objects; they are integers all the same.
        items = list(utilities)
        if all(type(item) is int for item in items):
            array = np.array([min(max(item, -MOST), MOST) for item in items], dtype=np.int64)
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64:
            array = np.minimum(array, np.uint64(MOST))
        return np.maximum(array.astype(np.int64), -MOST)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return np.clip(np.nan_to_num(array.astype(np.float64)), -WIDEST, WIDEST)
    raise InvalidInput(f"The utilities given to {owner} must be numbers that fit into 64 bits.")


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Mechanism):
    """A choice among candidates: epsilon, how far one utility moves, and whether all move the same way."""

    epsilon: Number
    _: KW_ONLY
    sensitivity: Number = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.monotone, bool):
            raise InvalidInput("monotone must be True or False.")
        _ = self.rate

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return amount(self.epsilon, "epsilon")

    @cached_property
    def rate(self) -> Fraction:
        """The exact weight of one unit of utility: epsilon / (2 sensitivity), twice that when monotone."""
        reach = positive(self.sensitivity, "sensitivity")
        rate = self.exact_epsilon / (reach if self.monotone else 2 * reach)
        if rate > 10**300:
            raise InvalidInput("sensitivity is too small beside epsilon; measure utilities in another unit.")
        return rate

    @property
    def scale(self) -> float:
        """The utility that is worth a factor e: 1 / rate."""
        return as_float(1 / self.rate)


def gaps_below_best(utilities: NDArray[Any]) -> list[Fraction]:
    """How far each utility lies below the best, exactly."""
    exact = [Fraction(utility) for utility in utilities.tolist()]
    best = max(exact)
    return [best - utility for utility in exact]
