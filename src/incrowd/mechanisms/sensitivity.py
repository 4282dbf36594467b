"""Neighbouring relations, and how far each moves the usual statistics (their sensitivity).

A guarantee compares two datasets that are *neighbours*. Which pairs are depends on the relation:

- `add-remove`: one has one record more than the other. Protects a person's presence.
- `replace`: same number of records, one differs in everything. The number of records is public.
- `change-attribute`: same records, one attribute of one record differs. Protects single facts, not people.

Replacing is a removal followed by an addition, so every sensitivity under `replace` is at most twice that
under `add-remove`; the sharper figures below are proven one by one in the docstrings. Every function
returns a `Sensitivity`: the largest change in L1 and in L2, exact rationals (the L2 norm as its square).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from incrowd.errors import InvalidInput
from incrowd.mechanisms.parameters import (
    counted,
    float_above,
    is_whole_type,
    positive,
    root_above,
)
from incrowd.noise.readings import (
    Number,
    binary,
    shown,
)

Relation = Literal["add-remove", "replace", "change-attribute"]


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of a statistic between neighbours, in L1 and in L2 (as its square)."""

    l1: Fraction
    l2_squared: Fraction

    @property
    def l2(self) -> float:
        """The L2 sensitivity, rounded up."""
        near = Fraction(math.sqrt(self.l2_squared))
        # 1 and 2 and other exact roots stay as they are.
        return float(near) if near**2 == self.l2_squared else float_above(root_above(self.l2_squared))


def relation_named(name: object) -> Relation:
    """The relation of that name, or a sentence that lists the three."""
    for relation in get_args(Relation):
        if type(name) is str and name == relation:
            return relation  # type: ignore[no-any-return]
    raise InvalidInput(f"relation must be one of {', '.join(get_args(Relation))}, not {shown(name)}.")


def count(relation: Relation = "add-remove") -> Sensitivity:
    """The number of records with some property: 1 under every relation.

    One record has the property or not, so whatever happens to it the count moves by at most 1. (The number
    of *all* records moves by 0 under the two relations that keep it; nothing need be spent on it there.)

    >>> count("replace").l1
    Fraction(1, 1)
    """
    relation_named(relation)
    return Sensitivity(Fraction(1), Fraction(1))


def total(low: Number, high: Number, relation: Relation = "add-remove") -> Sensitivity:
    """The sum of a value clamped to [low, high].

    Adding a record adds its value: at most max(|low|, |high|). Replacing it, or changing that attribute,
    moves the sum by the difference of two values in the interval: at most high - low.

    >>> total(18, 90).l1, total(18, 90, "replace").l1, total(-5, 5, "replace").l1
    (Fraction(90, 1), Fraction(72, 1), Fraction(10, 1))
    """
    least, most = _interval(low, high)
    change = max(abs(least), abs(most)) if relation_named(relation) == "add-remove" else most - least
    return Sensitivity(change, change**2)


def mean(low: Number, high: Number, records: int, relation: Relation = "replace") -> Sensitivity:
    """The mean of a value clamped to [low, high] over a public number of records.

    It is the sum divided by a constant: (high - low) / records. Under add-remove the number of records is
    itself private and the mean is no such quotient (one record may move it by all of high - low when the
    others are few), so the question is refused: release a sum and a count and divide them.

    >>> mean(0, 100, records=50).l1
    Fraction(2, 1)
    """
    if relation_named(relation) == "add-remove":
        raise InvalidInput(
            "A mean has no useful sensitivity under add-remove, where the number of records is private: "
            "release the sum and the count, and divide them."
        )
    spread = total(low, high, relation).l1 / counted(records, "records")
    return Sensitivity(spread, spread**2)


def contingency(tables: int | Iterable[Iterable[str]] = 1, relation: Relation = "add-remove") -> Sensitivity:
    """Contingency tables (histograms, marginals): each record is in exactly one cell of each table.

    Adding a record adds 1 to one cell of each of m tables: m in L1, sqrt(m) in L2, however many cells.
    Replacing it takes 1 from one cell and adds 1 to another in each: 2 m and sqrt(2 m). Changing one
    attribute does so only in the tables that contain it; name the attributes of each table to profit.

    >>> contingency().l1, contingency(1, "replace").l1, contingency(3).l2_squared
    (Fraction(1, 1), Fraction(2, 1), Fraction(3, 1))
    >>> contingency([["age", "sex"], ["sex"], ["job"]], "change-attribute").l1
    Fraction(4, 1)
    """
    name = relation_named(relation)
    if is_whole_type(tables):
        touched = counted(tables, "tables")
    elif isinstance(tables, str) or not isinstance(tables, Iterable):
        raise InvalidInput("tables must be the number of tables, or a list of each table's attributes.")
    else:
        margins = [frozenset([table] if isinstance(table, str) else table) for table in tables]
        if not margins:
            raise InvalidInput("tables must name at least one table.")
        touched = len(margins)
        if name == "change-attribute":
            touched = max(
                sum(attribute in margin for margin in margins)
                for attribute in frozenset().union(*margins) | {""}
            )
    cells = touched if name == "add-remove" else 2 * touched
    return Sensitivity(Fraction(cells), Fraction(cells))


def second_moments(bounds: Sequence[Number], relation: Relation = "add-remove") -> Sensitivity:
    """The matrix sum of x x^T over records x with |x_j| <= bounds[j]; its upper triangle with the diagonal.

    add-remove. One record adds x_i x_j to entry (i, j): L1 = sum over i <= j of b_i b_j, L2^2 = the same with
    squares; attained at x = b.

    replace. A diagonal entry lies in [0, b_i^2] and moves by at most b_i^2; another one lies between -b_i b_j
    and b_i b_j and moves by at most 2 b_i b_j. Summed (not always attained all at once): L1 = (sum of b_i)^2,
    L2^2 = sum of b_i^4 + 4 sum over i < j of b_i^2 b_j^2. Both are below twice the norm of one record.

    change-attribute. Only row j moves. From a to c the diagonal moves by |a - c| |a + c| and entry (j, i) by
    |a - c| |x_i|. With S the sum of the other bounds, L1 is the largest (b_j - c) (b_j + c + S) over c: that
    is 2 b_j S when S >= 2 b_j, and (b_j + S/2)^2 otherwise. With Q the sum of the other squared bounds,
    L2^2 <= b_j^4 + 4 b_j^2 Q. The largest over j counts.

    >>> second_moments([1, 1]).l1, second_moments([1, 1], "replace").l1
    (Fraction(3, 1), Fraction(4, 1))
    """
    name = relation_named(relation)
    b = _bounds(bounds)
    squares = [x**2 for x in b]
    if name == "change-attribute":
        rows = []
        for bound in b:
            others = sum(b, Fraction(0)) - bound
            rows.append(2 * bound * others if others >= 2 * bound else (bound + others / 2) ** 2)
        l2_rows = [s**2 + 4 * s * (sum(squares, Fraction(0)) - s) for s in squares]
        return Sensitivity(max(rows), max(l2_rows))
    one_l1, one_l2 = _triangle(b), _triangle(squares)
    if name == "add-remove":
        return Sensitivity(one_l1, one_l2)
    moved_l2 = 4 * one_l2 - 3 * sum((s**2 for s in squares), Fraction(0))
    return Sensitivity(sum(b, Fraction(0)) ** 2, moved_l2)


def covariance(
    ranges: Sequence[tuple[Number, Number]], records: int, relation: Relation = "replace"
) -> Sensitivity:
    """The covariance matrix (1/n) sum of (x - mean)(x - mean)^T of n public records; its upper triangle.

    With m the mean of the other n - 1 records, the scatter matrix is that of the others plus

        ((n - 1)/n) (z - m)(z - m)^T   for the record z.

    So replacing z by z' moves entry (i, j) of the covariance by (n - 1)/n^2 times |w_i w_j - w'_i w'_j|,
    where w_i and w'_i lie in an interval of length R_i = high_i - low_i that contains 0. That difference is
    at most R_i R_j. Proof: scale to R = 1 and write the intervals [-p, 1 - p] and [-s, 1 - s]. The product is
    largest at (1 - p)(1 - s) or p s and smallest at -p (1 - s) or -s (1 - p). Each of the four sums of a
    largest and a smallest is one of p, s, 1 - p, 1 - s.

    Hence L1 is (n - 1)/n^2 times the sum over i <= j of R_i R_j, and L2 likewise. Changing attribute j moves
    only the entries of row j. Under add-remove n is private: release `second_moments`, sums and a count.

    >>> covariance([(0, 1)], records=10).l1
    Fraction(9, 100)
    """
    name = relation_named(relation)
    if name == "add-remove":
        raise InvalidInput(
            "A covariance has no useful sensitivity under add-remove, where the number of records is "
            "private: release second moments, sums and the count, and combine them."
        )
    n = counted(records, "records", least=2)
    spreads = []
    for pair in ranges:
        low, high = _interval(*pair)
        spreads.append(high - low)
    if not spreads or max(spreads) == 0:
        raise InvalidInput("ranges must hold at least one (low, high) with low below high.")
    shrink = Fraction(n - 1, n**2)
    squares = [x**2 for x in spreads]
    if name == "change-attribute":
        l1 = max(spread * sum(spreads, Fraction(0)) for spread in spreads)
        l2 = max(square * sum(squares, Fraction(0)) for square in squares)
    else:
        l1, l2 = _triangle(spreads), _triangle(squares)
    return Sensitivity(shrink * l1, shrink**2 * l2)


def _triangle(numbers: Sequence[Fraction]) -> Fraction:
    """The sum of n_i n_j over i <= j."""
    whole_sum = sum(numbers, Fraction(0))
    return (whole_sum**2 + sum((x**2 for x in numbers), Fraction(0))) / 2


def _interval(low: Number, high: Number) -> tuple[Fraction, Fraction]:
    least, most = binary(low, "low"), binary(high, "high")
    if least > most:
        raise InvalidInput(f"low must not be above high, but {low} is above {high}.")
    return least, most


def _bounds(bounds: Sequence[Number]) -> list[Fraction]:
    if isinstance(bounds, str) or not isinstance(bounds, Iterable):
        raise InvalidInput("bounds must be a list with the largest absolute value of each attribute.")
    numbers = [positive(bound, "each bound") for bound in bounds]
    if not numbers:
        raise InvalidInput("bounds must hold the largest absolute value of at least one attribute.")
    return numbers
