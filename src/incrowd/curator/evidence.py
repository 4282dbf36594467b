"""What a noisy census shows: up to which cell units are held, read from the top down by evidence.

A census has one cell for each doubling of what a unit weighs. Most cells are empty, and noise makes about
half of the empty ones positive, so a cell is believed by how unlikely noise alone is to have made it: a sum
of w neighbouring cells is worth the nats of its tail, -ln P(S >= s), where S is the sum of w draws of noise.

A false cell costs as much as it is high: all noise grows with it. So
- a cell is sure if some window that begins there is worth SURE nats, and more the further it lies above what
  one row may weigh;
- a cell i doublings above the highest sure one is believed for WEAK + i RISE ln 2 nats: its chance of being
  false falls faster than what it would cost grows;
- if no cell is sure, the weight of one row (of four, where rows are counted) is the fallback, and only
  cells up to about there are believed.

Cells may have noise of different scales, the higher ones never less: a window is worth what it is at the
largest scale in it, as sums of narrower symmetric noise have no heavier tail (Birnbaum 1948).

Whatever is computed here is computed from released numbers: no choice in this module affects privacy.
Fewer than about SURE / epsilon units in neighbouring cells cannot be told from noise.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOWS = (1, 2, 3, 4, 6)
SURE = 11.0
WEAK = 2.25
RISE = 2.5
FAR = 0.7
"""Where nothing is sure, what a cell more than four below the fallback needs for each doubling, in ln 2."""
_PRIOR = {False: 2.0, True: 0.5}
"""What a sure cell needs for each doubling above one row's weight, in ln 2: for sums, and for counts."""
FALLBACK = {False: 0, True: 2}
"""The fallback, in doublings above one row's weight: for sums, and for counts."""
_LAST_UNSURE = {False: -1, True: 3}
"""The highest cell, relative to the fallback, that is believed where nothing is sure."""
MOST_UNSURE = {False: 0, True: 4}
"""The largest cap where nothing is sure, in doublings above one row's weight."""


@dataclass(frozen=True)
class Top:
    """The highest cell that is believed to hold units.

    cell: its number. held: False if nothing was believed, and it is the fallback. sure: whether any cell is.
    """

    cell: int
    held: bool
    sure: bool


def nats(sums: Floats, window: int) -> Floats:
    """-ln P(S >= s) for the sum S of `window` Laplace draws of scale 1.

    The density of S is a polynomial times exp(-|s|), and so is its tail.

    >>> float(nats(np.array([3.0]), 1)[0]) == 3.0 + math.log(2)
    True
    """
    size = np.abs(sums)
    tail = -size + np.log(np.polynomial.polynomial.polyval(size, _tail_polynomial(window)))
    return np.where(sums >= 0, -tail, -np.log1p(-np.exp(np.minimum(tail, -1e-300))))


@functools.lru_cache(maxsize=1024)
def tail_point(window: int, confidence: float, wide: bool = False) -> float:
    """Where the sum of `window` Laplace draws of scale 1 stays below with a confidence of at least a half.

    wide: one more draw, of scale 2, is in the sum.

    >>> round(tail_point(1, 0.975), 6) == round(math.log(20), 6)
    True
    >>> round(tail_point(0, 0.975, wide=True), 6) == round(2 * math.log(20), 6)
    True
    """
    low, high = 0.0, -4.0 * math.log1p(-confidence) + 8.0 * (window + wide)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(middle, window, wide) > 1 - confidence else (low, middle)
    return high


def _tail(point: float, window: int, wide: bool) -> float:
    """P(S >= s) for the sum S of `window` Laplace draws of scale 1, and one of scale 2 if `wide`.

    With a = 1 + t^2, the characteristic function of the latter is 1 / (a^w (4 a - 3)), which is
    (4/3)^w / (4 a - 3) less the sum over k = 1..w of (4/3)^(w - k) / 3 times 1 / a^k.
    """
    if not wide:
        return math.exp(-float(nats(np.array(point), window)))
    parts = (
        (4 / 3) ** (window - k) / 3 * math.exp(-float(nats(np.array(point), k))) for k in range(1, window + 1)
    )
    return (4 / 3) ** window * math.exp(-point / 2) / 2 - math.fsum(parts)


@functools.lru_cache
def _tail_polynomial(window: int) -> tuple[float, ...]:
    """The coefficients c_i of P(S >= s) = exp(-s) (c_0 + c_1 s + ...) for s >= 0."""
    coefficients = [0.0] * window
    last = window - 1
    for k in range(window):
        power = last - k
        density = math.factorial(last + k) / (
            math.factorial(last) * math.factorial(k) * math.factorial(power) * 2.0 ** (window + k)
        )
        for i in range(power + 1):
            coefficients[i] += density * math.factorial(power) / math.factorial(i)
    return tuple(coefficients)


def top_of(cells: NDArray[np.int64], epsilon: float | Floats, row: int, counts: bool) -> Top:
    """The highest believed cell of a census with noise of scale 1/epsilon, or one epsilon for each cell.

    Cell 0 holds weights up to 1, cell j those above 2^(j - 1) up to 2^j; 2^row is what one row weighs at
    most. `counts`: rows or groups are counted, each of which weighs 1.
    """
    size = len(cells)
    above_row = np.arange(size) - 1 - row
    worth = _worth(cells.astype(np.float64), np.broadcast_to(epsilon, cells.shape))
    sure = worth >= SURE + _PRIOR[counts] * math.log(2) * np.maximum(above_row, 0)
    any_sure = bool(sure.any())
    base = int(np.flatnonzero(sure)[-1]) if any_sure else row + 1 + FALLBACK[counts]
    above = np.arange(size) - base
    needed = WEAK + RISE * math.log(2) * np.maximum(above, 0)
    if any_sure:
        believed = (worth >= needed) | (above == 0)
        return Top(int(np.flatnonzero(believed)[-1]), True, True)
    needed = needed + FAR * math.log(2) * np.maximum(-above - 4, 0)
    believed = (worth >= needed) & (above <= _LAST_UNSURE[counts])
    if not believed.any():
        return Top(base, False, False)
    return Top(int(np.flatnonzero(believed)[-1]), True, False)


def _worth(cells: Floats, epsilons: Floats) -> Floats:
    """The most nats of a window that begins at each cell, less what trying several windows is worth."""
    cumulative = np.concatenate(([0.0], np.cumsum(cells)))
    worth = np.full(len(cells), -np.inf)
    for window in WINDOWS:
        sums = (cumulative[window:] - cumulative[:-window]) * epsilons[window - 1 :]
        worth[: len(sums)] = np.maximum(worth[: len(sums)], nats(sums, window))
    return worth - math.log(len(WINDOWS)) / 2
