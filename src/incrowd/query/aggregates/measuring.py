"""The measures of one leaf: each is asked for once, with the cap that holds for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from incrowd.query.aggregates.operands import Asked, Operand, moment_of, operand_of
from incrowd.query.clause import Clause
from incrowd.query.measure import Measure, Value
from incrowd.query.ownership import Sources
from incrowd.query.typed import Census, double


@dataclass
class Measuring:
    """Collects the measures of one leaf, and the values that its balls centre."""

    below: Sources
    keys: tuple[exp.Expr, ...]
    rows_cap: float | Census | None
    max_groups: float | None
    measures: dict[str, Measure] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    clause: Clause | None = None
    """The differential-privacy clause of the select, if it has one."""

    @property
    def groups(self) -> float | None:
        """The most groups that one unit counts in; None if it is still to be chosen."""
        return 1.0 if not self.keys or self.below.single else self.max_groups

    @property
    def rows(self) -> float | Census | None:
        """The most rows that one unit counts for; None, or a census, if it is still to be chosen."""
        return 1.0 if self.below.single else self.rows_cap

    def rows_of_ratio(self, *values: Operand) -> float | None:
        """The most rows that one unit counts for in an average or a spread; None if they are in a ball.

        A census of rows that was bought beforehand does not say what units weigh in a ball. Where a value has
        no bounds that anyone declared, one row may weigh as much as thousands of others.
        """
        rows = self.rows
        return rows if isinstance(rows, int | float) and not any(value.wide for value in values) else None

    @property
    def open(self) -> bool:
        """Whether some cap is still to be chosen."""
        return any(measure.cap is None for measure in self.measures.values())

    def operand(self, asked: Asked, function: str = "") -> Operand:
        """The number that an aggregate is about."""
        return operand_of(asked.node.this, function or asked.function, asked.test, asked.bounds, self.below)

    def moment(self, asked: Asked) -> Operand:
        """The date or timestamp that an aggregate is about, as a number."""
        return moment_of(asked.node.this, asked.function, asked.test, self.below)

    def number(self, present: exp.Expr | None, label: str) -> str:
        """The number of rows that count."""
        measure = Measure("", "row", "rows", present, None, 0, 1, label=f"the number of rows of {label}")
        return self.add(measure, self.rows)

    def number_of_units(self, present: exp.Expr | None, label: str) -> str:
        """The number of units with a row that counts."""
        return self.add(Measure("", "pair", "own", present, None, 0, 1, label=label), self.groups)

    def means(self, value: Operand, label: str) -> str:
        """The sum over units of a unit's average in each group, as distances from the centre."""
        measure = Measure(
            "",
            "pair",
            "rows",
            value.present,
            value.typed.sql,
            value.low,
            value.high,
            value.centre,
            False,
            label=f"the centred sum of units' averages of {label}",
            tested=value.tested,
            absent_if_null=value.checked,
            pooled="mean",
        )
        return self.add(measure, self.groups)

    def rows_of(self, value: Operand, label: str) -> str:
        """The number of rows that an average is over."""
        if self.rows_of_ratio(value) is not None:
            return self.number(value.present, label)
        words = f"the number of rows of {label}"
        one = double(1.0)
        return self.add(Measure("", "pair", "joint", value.present, one, 0, 1, label=words))

    def centred(self, value: Operand, label: str) -> str:
        """The sum of a value's distances from its centre."""
        measure = Measure(
            "",
            "row",
            "rows",
            value.present,
            value.typed.sql,
            value.low,
            value.high,
            value.centre,
            value.whole,
            label=f"the centred sum of {label}",
            tested=value.tested,
            absent_if_null=value.checked,
        )
        return self.add(self.in_ball(measure, value), self.rows_of_ratio(value))

    def squares(self, value: Operand, label: str) -> str:
        """The sum of squares of a value's distances from its centre."""
        most = ((value.high - value.low) / 2) ** 2
        square = exp.Mul(this=value.shifted, expression=value.shifted)
        words = f"the sum of squares of {label}"
        measure = Measure("", "row", "rows", value.present, square, 0, most, most / 2, False, label=words)
        measure = replace(measure, tested=value.tested, absent_if_null=value.checked)
        return self.add(self.in_ball(measure, value, value), self.rows_of_ratio(value))

    def in_ball(self, measure: Measure, *factors: Operand) -> Measure:
        """The measure, bounded together with all others over the same rows, if rows per unit are open."""
        if self.rows_of_ratio(*factors) is not None:
            return measure
        names = tuple(self._named(value.column) for value in factors)
        return replace(measure, level="pair", weighing="joint", factors=names)

    def _named(self, value: Value) -> str:
        """The name of a value, which is added if it is new."""
        for name, known in self.values.items():
            if known == value:
                return name
        name = f"x{len(self.values)}"
        self.values[name] = value
        return name

    def add(self, measure: Measure, cap: float | Census | None = None) -> str:
        """Adds a measure, unless there is an equal one already; returns its name."""
        if isinstance(cap, Census):
            capped = replace(measure, census=cap)
        else:
            capped = measure if cap is None else measure.capped(cap)
        for name, known in self.measures.items():
            if replace(known, name="", label="") == replace(capped, label=""):
                return name
        name = f"m{len(self.measures)}"
        self.measures[name] = replace(capped, name=name)
        return name
