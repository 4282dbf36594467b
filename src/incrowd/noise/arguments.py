"""What the samplers accept: sizes, sources, and exact real parameters, one or one for each element.

A parameter keeps two faces: a float64 within a relative 2^-53 of its value (the fast path works with that
and a bound on the error), and the exact rational value behind it (the slow path decides with that).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.readings import as_fraction, binary, shown

Real = int | float | Fraction | np.integer[Any] | np.floating[Any]
Reals = Sequence[Any] | NDArray[Any]
RealArray = Real | Reals
Shape = int | tuple[int, ...]
Size = Shape | None


@dataclass(frozen=True)
class Parameter:
    """Real parameters at their exact values: `shape` is None for a single number."""

    approx: NDArray[np.float64]
    """The values as float64: flat, one element when there is a single number."""
    shape: tuple[int, ...] | None
    values: NDArray[Any] | Fraction
    """The values as the caller wrote them: flat, any real dtype, or one rational number."""

    def exact(self, i: int) -> Fraction:
        """Return the exact value at flat index i (any index when there is a single number)."""
        if isinstance(self.values, Fraction):
            return self.values
        return as_fraction(self.values[i])

    def at(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the float64 values at these flat indices; the one value when there is a single number."""
        return self.approx if self.shape is None else self.approx[index]


def as_float(value: Fraction) -> float:
    """Return the nearest float64, with a clamp where the value is beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def single(value: Any, name: str) -> Fraction | None:
    """Return the exact value of a single real number, None for an array; refuse what is neither."""
    if type(value) is int or type(value) is Fraction:
        return Fraction(value)
    if isinstance(value, np.ndarray):
        return None if value.ndim else binary(value[()], name)
    return None if isinstance(value, Sequence) and not isinstance(value, str | bytes) else binary(value, name)


def parameter(value: Any, name: str) -> Parameter:
    """Read a real parameter, or an array or sequence of them; refuse anything else in one sentence."""
    number = single(value, name)
    if number is not None:
        return Parameter(np.array([as_float(number)]), None, number)
    array = value if isinstance(value, np.ndarray) else _array(value)
    shape, flat = array.shape, array.reshape(-1)
    if flat.dtype == object:
        numbers = [single(item, name) for item in flat.tolist()]
        if any(item is None for item in numbers):
            raise InvalidInput(f"Each {name} must be one number, not a list of them.")
        exact = np.empty(len(numbers), dtype=object)
        exact[:] = numbers
        approx = np.array([as_float(item) for item in numbers if item is not None], dtype=np.float64)
        return Parameter(approx, shape, exact)
    if flat.dtype.kind not in "iuf":
        raise InvalidInput(f"Each {name} must be a number such as 0.5, not of type {flat.dtype}.")
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        raise InvalidInput(f"Each {name} must be a finite number; the array holds NaN or an infinity.")
    if flat.dtype == np.longdouble and flat.dtype != np.float64:
        return parameter(np.array([as_fraction(item) for item in flat], dtype=object).reshape(shape), name)
    return Parameter(flat.astype(np.float64), shape, flat)


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a sequence as an array; elements of mixed types stay as they are, to be looked at one by one."""
    types = set(map(type, values))
    if types == {float}:
        return np.array(values, dtype=np.float64)
    if types == {int} and min(values) >= -(2**63) and max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    try:
        return np.array(values, dtype=object)
    except ValueError:  # rows of different kinds; as a list of rows, each is refused below
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
        return array


def single_scale(value: Any, name: str = "scale") -> Fraction | None:
    """Return a single scale, above 0 and at most 2^50; None where there is no single number."""
    scale = single(value, name)
    if scale is not None:
        _check_scale(scale, name)
    return scale


def _check_scale(scale: Fraction, name: str) -> None:
    if scale.numerator <= 0:
        raise InvalidInput(f"{name} must be above zero, not {as_float(scale):g}.")
    if scale.numerator > scale.denominator << 50:
        raise InvalidInput(
            f"{name} must be at most 2**50, not {as_float(scale):g}, so that noise fits into 64 bits: "
            "use a coarser grid."
        )


def scale_parameter(value: Any, name: str = "scale") -> Parameter:
    """Read a scale: above 0 and at most 2^50, one or one for each element."""
    scale = parameter(value, name)
    least, most = scale.approx.min(initial=1.0), scale.approx.max(initial=1.0)
    if least < 2.0**-1000 or most >= 2.0**50:  # near the borders only the exact value can tell
        for i in range(scale.approx.size):
            _check_scale(scale.exact(i), name)
    return scale


def draws(size: Size, shape: tuple[int, ...] | None = None) -> tuple[int, tuple[int, ...] | None]:
    """Return how many draws to make and the shape of the answer, None for a plain number.

    `shape` is that of the parameters, None for a single one; a size given besides must be the same.
    """
    if size is None:
        return (1, None) if shape is None else (math.prod(shape), shape)
    wanted = size if isinstance(size, tuple) else (size,)
    for side in wanted:
        if isinstance(side, bool) or not isinstance(side, int | np.integer) or side < 0:
            raise InvalidInput(
                f"The size must be a whole number of at least 0 or a tuple of them, not {shown(side)}."
            )
    wanted = tuple(int(side) for side in wanted)
    if math.prod(wanted) >= 2**48:
        raise InvalidInput("The size is more than any memory holds; draw in parts.")
    if shape is not None and shape != wanted:
        raise InvalidInput(f"The size {wanted} does not match the {shape} parameters given; leave it out.")
    return math.prod(wanted), wanted
