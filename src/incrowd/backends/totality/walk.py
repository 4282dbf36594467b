"""The walk over one expression: finds its possible values and proves that computing them never raises.

Only the tests of CASE count as guards. Engines reorder the operands of AND and the conditions of WHERE, and
they compute aggregates before the CASE around them. So an expression must be total on every row of its table,
whatever WHERE says, and optimizers may then move it anywhere. A construct without a rule is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from incrowd.backends.totality.engine_rules import Engine
from incrowd.backends.totality.forms import text_facts
from incrowd.backends.totality.guards import facts
from incrowd.backends.totality.values import Kind, Value, hull, meet

Environment = dict[int, Value]
"""The values of parts of an expression, by key, as narrowed by the tests of the CASEs around it."""


Rule = Callable[["Walk", exp.Expr, Environment], Value]
"""Proves one construct total and returns its values."""


class NotTotalError(Exception):
    """Raised for an expression that may raise or that no rule knows."""

    def __init__(self, node: exp.Expr, why: str = "it is not known") -> None:
        super().__init__(why)
        self.node = node
        self.why = why


class Keys:
    """A number for each expression, the same for expressions that differ at most in parentheses."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[int, tuple[exp.Expr, int]] = {}

    def of(self, node: exp.Expr) -> int:
        """The number of an expression."""
        known = self._known.get(id(node))
        if known is not None:
            return known[1]
        if isinstance(node, exp.Paren):
            number = self.of(node.this)
        else:
            parts = tuple((name, self._part(part)) for name, part in node.args.items() if part)
            number = self._numbers.setdefault((type(node), parts), len(self._numbers))
        self._known[id(node)] = (node, number)
        return number

    def _part(self, part: Any) -> Any:
        if isinstance(part, list):
            return tuple(self._part(item) for item in part)
        return ("node", self.of(part)) if isinstance(part, exp.Expr) else part


class Walk:
    """The walk over the expressions of one SELECT."""

    def __init__(
        self,
        engine: Engine,
        rules: Mapping[type[exp.Expr], Rule],
        keys: Keys,
        sources: Mapping[str, Mapping[str, Value]],
        query: Callable[[exp.Expr], list[Value]],
        grouped: bool = False,
    ) -> None:
        self.engine = engine
        self._rules = rules
        self.keys = keys
        self.query = query
        """The columns of a sub-query."""
        self.grouped = grouped
        """True if every group has at least one row."""
        self._sources = sources
        self._nothing: Environment = {}
        self._kept = [self._nothing]
        self._known: dict[tuple[int, int], Value] = {}

    def value(self, node: exp.Expr, known: Environment | None = None) -> Value:
        """The values of an expression; raises `NotTotalError` if computing it may raise."""
        environment = self._nothing if known is None else known
        key = self.keys.of(node)
        value = self._known.get((key, id(environment)))
        if value is None:
            value = self._value(node, environment)
            if key in environment:
                value = meet(value, environment[key])
            self._known[key, id(environment)] = value
        return value

    def truth(self, node: exp.Expr, known: Environment | None = None) -> Value:
        """The values of a condition; raises `NotTotalError` if it may raise or is no condition."""
        value = self.value(node, known)
        if value.kind not in (Kind.BOOLEAN, Kind.NULL):
            raise NotTotalError(node, "it is no condition")
        return value

    def _value(self, node: exp.Expr, known: Environment) -> Value:
        if isinstance(node, exp.Column):
            return self._column(node)
        rule = self._rules.get(type(node))
        if rule is None:
            raise NotTotalError(node)
        return rule(self, node, known)

    def _column(self, node: exp.Column) -> Value:
        parts_of(node, "this", "table")
        name, table = self.engine.named(node.name), self.engine.named(node.table)
        places = [self._sources.get(table, {})] if table else list(self._sources.values())
        matches = [columns[name] for columns in places if name in columns]
        if len(matches) != 1:
            raise NotTotalError(node, "there is no such column")
        return matches[0]

    def branches(self, node: exp.Case, known: Environment) -> list[tuple[exp.Expr | None, Environment]]:
        """The results of a CASE, each with the facts that hold where it is computed."""
        parts_of(node, "ifs", "default")
        results: list[tuple[exp.Expr | None, Environment]] = []
        before = known
        for branch in node.args["ifs"]:
            parts_of(branch, "this", "true")
            self.truth(branch.this, before)
            results.append((branch.args["true"], self.guarded(branch.this, True, before)))
            before = self.guarded(branch.this, False, before)
        results.append((node.args.get("default"), before))
        return results

    def guarded(self, test: exp.Expr, holds: bool, known: Environment) -> Environment:
        """The facts that hold where a test is true (`holds`), or where it is false or NULL."""

        def evaluate(node: exp.Expr) -> Value:
            return self.value(node, known)

        learned = dict(known)
        drawn = [*facts(test, holds, evaluate), *(text_facts(self, test, known) if holds else ())]
        for node, fact in drawn:
            self._learn(learned, node, fact, known)
        if learned == known:
            return known
        self._kept.append(learned)
        return learned

    def _learn(self, learned: Environment, node: exp.Expr, fact: Value, known: Environment) -> None:
        while isinstance(node, exp.Paren):
            node = node.this
        if node.find(exp.Column, exp.AggFunc) is None:
            # Engines compute constants when they plan, also those of branches that no row reaches.
            return
        key = self.keys.of(node)
        learned[key] = meet(learned[key], fact) if key in learned else fact
        if not fact.empty and (isinstance(node, exp.Length) or _counts_bytes(node)):
            # A letter has at least one byte, so a bound on bytes also bounds letters.
            inner = node.this if isinstance(node, exp.Length) else node.expressions[0]
            whole = self.value(inner, known)
            self._learn(learned, inner, whole.but(high=min(whole.high, fact.high)), known)
        if isinstance(node, exp.Abs):
            held = self.value(node.this, known)
            low, high = (-fact.high, fact.high) if not fact.empty else (1, 0)
            far = fact.above
            size = max(held.tiny, fact.low if not fact.empty else 0)
            narrowed = held.but(
                low=max(held.low, low),
                high=min(held.high, high),
                below=held.below and far,
                above=held.above and far,
                nan=held.nan and fact.nan,
                tiny=size,
                zero=held.zero and fact.may_be_zero,
            )
            self._learn(learned, node.this, narrowed, known)

    def case(self, node: exp.Case, known: Environment) -> Value:
        """The values of a CASE: those of its results, each under the facts that hold where it is computed."""
        results = []
        for result, environment in self.branches(node, known):
            results.append(Value(Kind.NULL) if result is None else self.value(result, environment))
        return self.united(node, results)

    def united(self, node: exp.Expr, parts: list[Value]) -> Value:
        """One type and range that covers several values; raises `NotTotalError` if their types differ."""
        common = parts[0]
        for part in parts[1:]:
            both = hull(common, part)
            if both is None:
                raise NotTotalError(node, "its parts are of different types")
            common = both
        return common


def _counts_bytes(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "OCTET_LENGTH"


def parts_of(node: exp.Expr, *understood: str) -> None:
    """Refuse a construct if the parser attached a part to it that its rule does not read."""
    for name, value in node.args.items():
        if value and name not in understood:
            raise NotTotalError(node, f"its {name} is not known")
