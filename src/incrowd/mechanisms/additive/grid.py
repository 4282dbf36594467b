"""Values on a lattice: integers as they are, reals floored onto multiples of a power of two.

Noise added to floats breaks the guarantee (Mironov 2012), so a value is turned into a whole number of
steps, noise is a whole number of steps, and only the sum is turned back. Knows nothing of privacy.

Two facts that the mechanisms rest on:

- *Flooring.* |floor(a) - floor(b)| < |a - b| + 1, so two reals at most D apart are at most ceil(D / g)
  steps apart, and two vectors of d reals at most D apart in L1 are at most ceil(D / g) + d - 1 steps
  apart: the sum of the d whole differences lies strictly below D / g + d. In L2 they are at most
  D / g + sqrt(d) steps apart (triangle inequality).
- *Saturation.* Values are clamped to [-LIMIT, LIMIT] steps, LIMIT = 2^61, which moves no two further apart.
  (Refusing them would tell that a value is large.) NaN counts as 0. Sums with noise are clamped likewise.
  Noise arrives as int64, clamped at CLAMP = 2^62 by its sampler. As |value| + LIMIT <= CLAMP, a sum with
  clamped noise and a sum with the true noise are clamped to the same end. So the output is a function of
  value + true noise: post-processing, free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.parameters import is_whole_type, log2_floor, positive, root_above
from incrowd.noise.readings import shown

CLAMP = 2**62
LIMIT = CLAMP // 2
LEAST_EXPONENT, GREATEST_EXPONENT = -1000, 900

Steps = NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """Multiples of 2^exponent; `integers` says that values come and go as integers."""

    exponent: int = 0
    integers: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.integers, bool):
            raise InvalidInput("integers must be True or False.")
        if type(self.exponent) is not int or not LEAST_EXPONENT <= self.exponent <= GREATEST_EXPONENT:
            raise InvalidInput(
                f"exponent must be a whole number from {LEAST_EXPONENT} to {GREATEST_EXPONENT}, not "
                f"{shown(self.exponent)}; measure the values in another unit."
            )

    def __repr__(self) -> str:
        return "INTEGERS" if self == INTEGERS else f"Grid({self.exponent}, integers={self.integers})"

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring points."""
        return Fraction(2) ** self.exponent

    def steps(self, value: Any, owner: str) -> Steps:
        """Each value as a whole number of steps, floored and clamped; an array of the same shape.

        >>> Grid(-1, integers=False).steps([0.3, 0.5, -0.1], "Laplace").tolist()
        [0, 1, -1]
        """
        array = _as_numbers(value, owner)
        if array.dtype.kind == "f":
            if self.integers:
                raise InvalidInput(
                    f"This {owner} releases integers, but the value holds floats: round them, or give "
                    f"{owner} a grid= such as 2**-10 (or a float sensitivity) to release reals."
                )
            return self._floor_floats(array.astype(np.float64))
        return self._floor_integers(array)

    def values(self, steps: Steps) -> Any:
        """Steps as values again: int or float for a single one, int64 or float64 for an array."""
        if self.integers:
            return int(steps) if steps.ndim == 0 else steps
        # The conversion to float64 rounds; it sees only released numbers, so it is post-processing.
        floats = np.ldexp(steps.astype(np.float64), self.exponent)
        return float(floats) if steps.ndim == 0 else floats

    def length(self, steps: int) -> Any:
        """A number of steps as a length in the units of the values."""
        return steps if self.integers else float(steps * self.step)

    def _floor_floats(self, array: NDArray[np.float64]) -> Steps:
        most = float(LIMIT * self.step)  # a power of two: exact
        return self.floor(np.clip(np.where(np.isnan(array), 0.0, array), -most, most))

    def floor(self, array: NDArray[np.float64]) -> Steps:
        """Floats, known to be within LIMIT steps, as whole numbers of steps."""
        with np.errstate(under="ignore"):
            scaled = array * 2.0**-self.exponent  # exact, but for underflow
        floored = np.asarray(np.floor(scaled)).astype(np.int64)
        if self.exponent > 0:
            # A tiny negative float can underflow to -0.0, whose floor would be 0.
            floored = np.where((array < 0) & (floored == 0), np.int64(-1), floored)
        return floored

    def _floor_integers(self, array: NDArray[Any]) -> Steps:
        if self.exponent > 0:
            steps = _in_a_word(array) >> np.int64(min(63, self.exponent))
            return np.asarray(np.clip(steps, -LIMIT, LIMIT), dtype=np.int64)
        most = LIMIT >> -self.exponent
        whole = _in_a_word(array)
        steps = np.clip(whole, -most, most) << np.int64(min(62, -self.exponent))
        # What is larger has more than LIMIT steps, whatever is left of them after the shift.
        return np.asarray(np.where(whole > most, LIMIT, np.where(whole < -most, -LIMIT, steps)))


INTEGERS = Grid()


def lattice_of(grid: object, sensitivity: object, default_exponent: int) -> Grid:
    """The grid that a mechanism works on.

    A grid that was asked for (a power of two, or INTEGERS) is taken; without one, a whole sensitivity (1, not
    1.0) means integers, and any other reals on the default grid.
    """
    if isinstance(grid, Grid):
        return grid
    if grid is None:
        return INTEGERS if is_whole_type(sensitivity) else at_exponent(default_exponent)
    step = positive(grid, "grid")
    exponent = log2_floor(step)
    if Fraction(2) ** exponent != step:
        raise InvalidInput(f"grid must be a power of two such as 2**-10, not {shown(grid)}.")
    return at_exponent(exponent)


def at_exponent(exponent: int) -> Grid:
    """The grid of step 2^exponent for reals."""
    if not LEAST_EXPONENT <= exponent <= GREATEST_EXPONENT:
        raise InvalidInput(
            f"A grid of 2**{exponent} is outside 2**{LEAST_EXPONENT} to 2**{GREATEST_EXPONENT}; "
            "measure the values in another unit."
        )
    return Grid(exponent, integers=False)


def floored_l1(sensitivity: Fraction, grid: Grid, size: int) -> int:
    """The L1 sensitivity in steps after flooring `size` numbers (integers lose nothing).

    >>> floored_l1(Fraction(3), INTEGERS, 7), floored_l1(Fraction(3), at_exponent(1), 7)
    (3, 8)
    """
    if grid.integers:
        # Whole vectors are a whole distance apart.
        return max(1, math.floor(sensitivity))
    return -((-sensitivity) // grid.step) + size - 1


def floored_l2(sensitivity: Fraction, grid: Grid, size: int) -> Fraction:
    """The L2 sensitivity in steps after flooring `size` numbers, rounded up."""
    if grid.integers:
        return sensitivity
    if size == 1:
        return Fraction(-((-sensitivity) // grid.step))
    return sensitivity / grid.step + root_above(Fraction(size))


def add_saturating(steps: Steps, noise: Any) -> Steps:
    """steps + noise, clamped to [-LIMIT, LIMIT] without overflow; steps must lie there already."""
    clamped = np.clip(np.asarray(noise, dtype=np.int64), -LIMIT - steps, LIMIT - steps)
    return np.asarray(steps + clamped, dtype=np.int64)


def check_length(array: Steps, grid: Grid, size: int, owner: str) -> None:
    """Refuse more reals than the sensitivity was worked out for: each may lose a step to flooring."""
    if not grid.integers and array.size > size:
        raise InvalidInput(
            f"This {owner} was calibrated for {size} real number{'s' if size > 1 else ''}, and the value "
            f"holds more; give {owner} size= the length of the vector."
        )


def _in_a_word(array: NDArray[Any]) -> Steps:
    """Integers of any size, clamped to what 64 bits hold."""
    if array.dtype.kind == "O":
        held = [max(-CLAMP, min(CLAMP, item)) for item in array.flat]
        return np.array(held, dtype=np.int64).reshape(array.shape)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(CLAMP))
    return np.clip(array.astype(np.int64), -CLAMP, CLAMP)


def _as_numbers(value: Any, owner: str) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput(f"The value given to {owner} is a masked array; fill its gaps first.")
    try:
        array = np.asarray(value)
    except Exception:
        raise InvalidInput(f"The value given to {owner} is not a rectangular array of numbers.") from None
    if array.dtype.kind in "iu":
        return array
    if not isinstance(value, np.ndarray | np.generic) and array.dtype.kind == "f":
        # Lists of integers around 2^63 arrive as floats; they are integers all the same.
        items = np.asarray(value, dtype=object)
        if items.size and all(type(item) is int for item in items.flat):
            return items
    if array.size == 0 and array.dtype.kind in "fO":
        return array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array
    # Integers past 64 bits arrive as objects; they are integers all the same.
    if array.dtype.kind == "O" and all(type(item) is int for item in array.flat):
        return array
    raise InvalidInput(f"The value given to {owner} must be a number or an array of numbers.")
