"""The walk over one expression: what its values can be, and a proof that computing them never raises.

Only tests of CASE guard: engines reorder what AND and WHERE join, and compute aggregates before the CASE
around them. So an expression is total on every row of its table whatever WHERE says, and optimizers may move
it anywhere. What a rule does not know is refused.
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
"""What the tests of the CASEs around an expression say about its parts, by their keys."""


Rule = Callable[["Walk", exp.Expr, Environment], Value]
"""How a construct is proven, and what its values are."""


class NotTotalError(Exception):
    """An expression that may raise, or is not known."""

    def __init__(self, node: exp.Expr, why: str = "it is not known") -> None:
        super().__init__(why)
        self.node = node
        self.why = why


class Keys:
    """A number for each expression, the same for expressions that are written alike, parentheses apart."""

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
            parts = tuple((name, self._part(each)) for name, each in node.args.items() if each)
            number = self._numbers.setdefault((type(node), parts), len(self._numbers))
        self._known[id(node)] = (node, number)
        return number

    def _part(self, part: Any) -> Any:
        if isinstance(part, list):
            return tuple(self._part(each) for each in part)
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
        """Whether every group has a row."""
        self._sources = sources
        self._nothing: Environment = {}
        self._kept = [self._nothing]
        self._known: dict[tuple[int, int], Value] = {}

    def value(self, node: exp.Expr, known: Environment | None = None) -> Value:
        """The values of an expression; raises `NotTotalError` if computing it may raise."""
        environment = self._nothing if known is None else known
        key = self.keys.of(node)
        found = self._known.get((key, id(environment)))
        if found is None:
            found = self._value(node, environment)
            if key in environment:
                found = meet(found, environment[key])
            self._known[key, id(environment)] = found
        return found

    def truth(self, node: exp.Expr, known: Environment | None = None) -> Value:
        """The same for a condition."""
        found = self.value(node, known)
        if found.kind not in (Kind.BOOLEAN, Kind.NULL):
            raise NotTotalError(node, "it is no condition")
        return found

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
        found = [columns[name] for columns in places if name in columns]
        if len(found) != 1:
            raise NotTotalError(node, "there is no such column")
        return found[0]

    def branches(self, node: exp.Case, known: Environment) -> list[tuple[exp.Expr | None, Environment]]:
        """The results of a CASE, each with what is known where it is reached."""
        parts_of(node, "ifs", "default")
        found: list[tuple[exp.Expr | None, Environment]] = []
        before = known
        for each in node.args["ifs"]:
            parts_of(each, "this", "true")
            self.truth(each.this, before)
            found.append((each.args["true"], self.guarded(each.this, True, before)))
            before = self.guarded(each.this, False, before)
        found.append((node.args.get("default"), before))
        return found

    def guarded(self, test: exp.Expr, holds: bool, known: Environment) -> Environment:
        """What is known where a test is true, or where it is not."""

        def evaluate(node: exp.Expr) -> Value:
            return self.value(node, known)

        made = dict(known)
        drawn = [*facts(test, holds, evaluate), *(text_facts(self, test, known) if holds else ())]
        for node, fact in drawn:
            self._learn(made, node, fact, known)
        if made == known:
            return known
        self._kept.append(made)
        return made

    def _learn(self, made: Environment, node: exp.Expr, fact: Value, known: Environment) -> None:
        while isinstance(node, exp.Paren):
            node = node.this
        key = self.keys.of(node)
        made[key] = meet(made[key], fact) if key in made else fact
        if not fact.empty and (isinstance(node, exp.Length) or _counts_bytes(node)):
            # A letter has at least one byte.
            inner = node.this if isinstance(node, exp.Length) else node.expressions[0]
            whole = self.value(inner, known)
            self._learn(made, inner, whole.but(high=min(whole.high, fact.high)), known)
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
            self._learn(made, node.this, narrowed, known)

    def case(self, node: exp.Case, known: Environment) -> Value:
        """The values of a CASE: those of its results, each where it is reached."""
        results = []
        for result, environment in self.branches(node, known):
            results.append(Value(Kind.NULL) if result is None else self.value(result, environment))
        return self.united(node, results)

    def united(self, node: exp.Expr, parts: list[Value]) -> Value:
        """One type and range for several."""
        found = parts[0]
        for each in parts[1:]:
            both = hull(found, each)
            if both is None:
                raise NotTotalError(node, "its parts are of different types")
            found = both
        return found


def _counts_bytes(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "OCTET_LENGTH"


def parts_of(node: exp.Expr, *understood: str) -> None:
    """Refuse a construct to which the parser attached anything else than what its rule reads."""
    for name, value in node.args.items():
        if value and name not in understood:
            raise NotTotalError(node, f"its {name} is not known")
