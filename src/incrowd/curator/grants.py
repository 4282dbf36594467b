"""Grants: a whole price, reserved for one purpose, that pays for several releases chosen as one goes.

The price is spent durably before the first row is read, for a schedule of releases whose guarantees are
fixed (`schedule` states and proves the theorem); which questions they answer may depend on earlier results.
A crash leaves it spent. What comes of it (a model, a synthetic table) is recorded once, and the same grant on
the same data is recalled for nothing. `Curator.ask` is the smallest grant: one question, known beforehand.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from incrowd.backends import Progress
from incrowd.backends.measures import MOST_RELEASED
from incrowd.curator.answer import Answer
from incrowd.curator.census import ChosenCaps
from incrowd.curator.paying import Payment
from incrowd.curator.preparing import Prepared, prove
from incrowd.curator.pricing import shared_price
from incrowd.curator.releasing import Exact
from incrowd.curator.request import Request
from incrowd.curator.schedule import Kind, Step, Strength, read_schedule, strengths, together
from incrowd.curator.showing import WIDER
from incrowd.errors import BackendError, InvalidInput, NotPermitted, QueryError
from incrowd.mechanisms import Gaussian, Laplace
from incrowd.mechanisms.additive import tree as trees
from incrowd.noise import categorical
from incrowd.noise.readings import (
    shown,
)
from incrowd.privacy import Guarantee
from incrowd.query import Leaf, Measure, parse
from incrowd.query.sql import DIALECT, from_items

if TYPE_CHECKING:
    from incrowd.curator.curator import Curator

BRANCHING = 16


@dataclass(frozen=True)
class Tree:
    """Noisy counts of equal cells between two bounds, whose sums over any range fit each other.

    cells: an estimate for each cell, perhaps negative. low, high: the bounds of all cells together. whole:
    whether each cell is one whole number.
    """

    cells: NDArray[np.float64]
    low: float
    high: float
    whole: bool = False

    @property
    def edges(self) -> NDArray[np.float64]:
        """Where cells begin, and where the last one ends."""
        return np.linspace(self.low, self.high, len(self.cells) + 1)

    @property
    def total(self) -> float:
        """The number of all rows."""
        return float(self.cells.sum())

    def quantile(self, rank: float) -> float:
        """The value below which a share `rank` of the rows lies: the middle of its cell, or its number."""
        if not 0 <= rank <= 1:
            raise InvalidInput(f"A rank lies between 0 and 1, not at {shown(rank)}.")
        below = np.maximum.accumulate(np.cumsum(self.cells))
        cell = int(np.searchsorted(below, rank * below[-1])) if below[-1] > 0 else len(self.cells) // 2
        cell, edges = min(cell, len(self.cells) - 1), self.edges
        return float(edges[cell] if self.whole else (edges[cell] + edges[cell + 1]) / 2)


@dataclass
class Grant:
    """A price that is paid for a purpose, and what may still be released for it.

    recorded: what was recorded for the same purpose on the same data, or by `record`.
    """

    curator: Curator = field(repr=False)
    purpose: str
    epsilon: float
    delta: float
    confidence: float
    cost: Guarantee = field(repr=False)
    """The guarantee of everything that is released for this grant."""
    payment: Payment = field(repr=False)
    unused: list[Strength] = field(repr=False)
    closed: bool = field(default=False, repr=False)
    """Whether its `with` block has ended, so that nothing more is released."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def reserve(
        cls,
        curator: Curator,
        epsilon: float,
        delta: float,
        *,
        purpose: str,
        schedule: Mapping[Kind, int] | Sequence[Step],
        about: Mapping[str, Any] | None,
        analyst: str,
        confidence: float,
        version: str,
    ) -> Grant:
        """The grant of a schedule: on record, or paid now."""
        if not isinstance(purpose, str) or not purpose.strip():
            raise InvalidInput("A grant needs a purpose in words, such as purpose='k-means of adult'.")
        if not (type(confidence) in (int, float) and 0 < confidence < 1):
            raise InvalidInput(f"confidence must lie between 0 and 1, not {shown(confidence)}.")
        steps = read_schedule(schedule)
        unused = strengths(steps, epsilon, delta)
        named = [(step.kind, step.share) for step in steps]
        told = _told({} if about is None else about)
        text = json.dumps(["grant", purpose, repr(epsilon), repr(delta), confidence, named, told])
        question = hashlib.sha256(text.encode()).hexdigest()
        payment, cost = Payment.recall(curator.ledger, analyst, question, version), together(unused)
        if payment.recorded is None:
            payment = payment.reserve(cost, delta, purpose if curator.catalog.keep_questions else None)
        return cls(curator, purpose, epsilon, delta, confidence, cost, payment, list(unused))

    @property
    def recorded(self) -> bytes | None:
        """What was released for this purpose, if it is on record."""
        return self.payment.recorded

    @property
    def recalled(self) -> bool:
        """Whether it was on record before, and this grant cost nothing."""
        return self.payment.recalled

    @property
    def left(self) -> dict[str, int]:
        """How many steps of each kind are unused."""
        return dict(Counter(strength.kind for strength in self.unused))

    def record(self, artefact: bytes) -> None:
        """Keep what was made of the releases; once. Nothing can be released for this grant afterwards."""
        if not isinstance(artefact, bytes):
            raise InvalidInput(
                "Only bytes can be recorded; turn the result into bytes, such as with json.dumps."
            )
        self.curator.refuse_unusable()
        self.payment.record(artefact)

    def sums(
        self,
        sql: str,
        *,
        contribution: int | None = None,
        groups: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Sums and counts, one for each aggregate and public group, with one step's noise on all of them."""
        return self._summed(
            "sums", Request(sql, delta=self.delta, contribution=contribution, groups=groups), progress
        )

    def histogram(
        self,
        sql: str,
        *,
        contribution: int | None = None,
        groups: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """How many rows have each combination of the selected columns: `SELECT sex, education FROM adult`."""
        counted = _counted(sql)
        request = Request(counted, delta=self.delta, contribution=contribution, groups=groups)
        return self._summed("histogram", request, progress)

    def _summed(self, kind: Kind, request: Request, progress: Progress | None) -> Answer:
        question, leaf = self._prepared(request)
        if any(aggregate.kind == "quantile" for aggregate in leaf.aggregates):
            raise QueryError(
                "A grant's sums are COUNT, SUM, AVG and their kin; ask grant.tree for quantiles."
            )
        strength = self._next(kind)
        price = shared_price(question.plan, strength.mu, strength.epsilon, self.delta, self.confidence)
        self._use(strength)
        exact = self._execute(question, progress)
        released = self.curator.noise([exact], price)
        return Answer(question.plan, released, price, public=question.public)

    def select(
        self,
        sql: str,
        *,
        smallest: bool = False,
        contribution: int | None = None,
        groups: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The group whose sum or count is about the largest (or smallest), as a row of its keys.

        Theorem. One unit moves the vector of all groups by at most S in L1, so the largest and the smallest
        change of any group lie at most S apart: drawing a group with weight exp(epsilon * sum / S) has
        bounded range epsilon.
        """
        question, leaf = self._prepared(Request(sql, delta=0.0, contribution=contribution, groups=groups))
        kinds = [aggregate.kind for aggregate in leaf.aggregates]
        plain = _plain(question.plan.outer)
        if not leaf.keys or len(kinds) != 1 or kinds[0] not in ("count", "sum") or not plain:
            raise QueryError(
                "A selection needs one COUNT or SUM by groups and nothing computed from it, such as "
                "SELECT town, COUNT(*) FROM t GROUP BY town."
            )
        if question.keys[0] is None or not question.keys[0].num_rows:
            raise QueryError("There is no group to select from; choose a condition that some group can meet.")
        strength = self._next("select")
        self._use(strength)
        exact = self._execute(question, progress)
        (measure,) = leaf.measures.values()
        sums = exact.sums[measure.name]
        rate = strength.epsilon / (measure.sensitivity_steps * leaf.distance)
        chosen = int(categorical(-sums if smallest else sums, rate=rate))
        row = exact.groups.slice(chosen, 1).to_pylist()[0]
        return {key.label: row[key.name] for key in leaf.keys}

    def tree(
        self,
        sql: str,
        *,
        branching: int = BRANCHING,
        contribution: int | None = None,
        progress: Progress | None = None,
    ) -> Tree:
        """A tree of counts over a bounded column: `SELECT age FROM adult WHERE sex = 'Female'`."""
        if not (isinstance(branching, int) and 2 <= branching <= 1024):
            raise InvalidInput(f"branching must be a whole number from 2 to 1024, not {shown(branching)}.")
        question, leaf = self._prepared(Request(_ranked(sql), delta=0.0, contribution=contribution))
        if leaf.keys:
            raise QueryError("A tree is about one group of rows: choose it with WHERE instead of GROUP BY.")
        (measure,) = leaf.measures.values()
        if measure.bands:
            raise QueryError("A tree needs bounds of what it is over; write LEAST and GREATEST around it.")
        strength = self._next("tree")
        # Made before the step is used: noise too wide to be drawn is refused here.
        noisy = _noise_for(strength, measure, leaf, trees.height(measure.buckets, branching) + 1)
        self._use(strength)
        exact = self._execute(question, progress)
        _, cell, steps = exact.cells[measure.name]
        cells = np.zeros(measure.buckets, dtype=np.int64)
        cells[cell] = steps
        # Python's integers where 64 bits are too few; a clamped sum moves no further than the sum itself.
        large = float(cells.astype(np.float64).sum()) >= MOST_RELEASED
        sums = trees.levels_of(cells.astype(object) if large else cells, branching)
        levels = [np.minimum(level, MOST_RELEASED).astype(np.int64) for level in sums]
        released = [np.asarray(noisy(level)) for level in levels]
        estimate = trees.consistent(released, branching)[: measure.buckets] * measure.step
        whole = measure.whole and measure.high - measure.low == measure.buckets
        return Tree(estimate, measure.low, measure.high, whole)

    def _prepared(self, request: Request) -> tuple[Prepared, Leaf]:
        """A question that a grant can answer; refused while its step is unused."""
        question = self.curator.prepare(replace(request, confidence=self.confidence))
        if len(question.plan.leaves) != 1:
            raise QueryError("A grant's step answers one SELECT over private rows; use a step for each.")
        leaf = question.plan.leaves[0].with_bought_caps()
        question = replace(question, plan=replace(question.plan, leaves=(leaf,)))
        if not leaf.public:
            private = ", ".join(key.label for key in leaf.keys if not key.public)
            raise QueryError(
                f"The values of {private} are not public, and a grant cannot show them: have the owner "
                f"declare a domain, or list the values with WHERE {private.split(',')[0]} IN (...)."
            )
        if leaf.uncapped:
            raise QueryError(
                "A grant needs to know how much one unit contributes: say contribution= for the number of "
                "rows that one unit counts for (groups= where units are counted), or have the owner "
                "declare it."
            )
        prove(leaf, self.curator.backend)
        return question, leaf

    def _execute(self, question: Prepared, progress: Progress | None) -> Exact:
        """The exact numbers of a step that is used already.

        A failure leaves the step used. Nothing was released but the failure itself, which no row causes in a
        statement that is proven total. What is not proven is the machine: its memory or its disk may run out
        because of what one unit's rows hold. A step that could be repeated would let an analyst try such
        questions for nothing until one fails, so each try is one step.
        """
        failure = ""
        try:
            (exact,) = self.curator.execute(question, [ChosenCaps()], progress)
        except BackendError as error:
            failure = str(error).rstrip(".")
        if failure:
            raise BackendError(
                f"{failure}; this step of the grant for {self.purpose} stays used, so ask with another step, "
                "or plan a spare one in the next grant's schedule."
            )
        return exact

    def _next(self, kind: Kind) -> Strength:
        """What the next step of a kind may use; NotPermitted where there is none."""
        if self.recorded is not None:
            raise NotPermitted(
                f"The grant for {self.purpose} is on record and releases nothing more: use grant.recorded, "
                "or make a grant for another purpose."
            )
        if self.closed:
            raise NotPermitted(
                f"The grant for {self.purpose} ended with its with block and releases nothing more: ask "
                "inside the block, or make another grant."
            )
        strength = next((strength for strength in self.unused if strength.kind == kind), None)
        if strength is None:
            raise NotPermitted(
                f"The grant for {self.purpose} has no step left for {kind}: plan more of them in its "
                "schedule."
            )
        return strength

    def _use(self, strength: Strength) -> None:
        """Take this very step out of the schedule, for good; NotPermitted if another thread was first.

        Not the next of its kind: what was calibrated to one strength must not be charged to a weaker one.
        """
        with self._lock:
            self._next(strength.kind)
            if strength not in self.unused:
                raise NotPermitted(f"That step of the grant for {self.purpose} was just used; ask again.")
            self.unused.remove(strength)

    def __enter__(self) -> Grant:
        if self.closed:
            raise NotPermitted(f"The grant for {self.purpose} ended with its with block; make another grant.")
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing more is released, and nothing is given back: what was not used stays spent."""
        with self._lock:
            self.closed = True


def _noise_for(
    strength: Strength, measure: Measure, leaf: Leaf, levels: int
) -> Callable[[NDArray[np.int64]], Any]:
    """Noise for a tree of so many levels, each of which one unit moves by at most the sensitivity."""
    reach = measure.sensitivity_steps * leaf.distance
    if strength.mu:
        # levels * reach^2 is the square of the tree's length.
        width = Fraction(reach) / Fraction(strength.mu) * WIDER
        scale = width * Fraction(np.sqrt(levels)) * WIDER
        return Gaussian(scale=scale, sensitivity=reach).release
    return Laplace(strength.epsilon, sensitivity=reach * levels).release


def _select(sql: str) -> exp.Select:
    tree = parse(sql).tree.copy()
    if not isinstance(tree, exp.Select) or any(
        tree.args.get(part) for part in ("group", "having", "distinct", "order", "limit", "offset")
    ):
        raise QueryError(
            "Select the columns of rows, without GROUP BY, ORDER BY or LIMIT, such as SELECT age FROM adult."
        )
    return tree


def _plain(outer: exp.Query) -> bool:
    """Whether the SQL above the released numbers shows them as they are, in any order."""
    if not isinstance(outer, exp.Select) or any(
        outer.args.get(part) for part in ("where", "limit", "offset")
    ):
        return False
    return all(isinstance(column.unalias(), exp.Column) for column in outer.expressions) and all(
        isinstance(item, exp.Table) for item in from_items(outer)
    )


def _told(about: object) -> str:
    """What tells a grant from others, as text that is the same for the same values only."""

    def plain(value: object) -> bool:
        if isinstance(value, Mapping):
            return all(isinstance(key, str) and plain(item) for key, item in value.items())
        if isinstance(value, list):
            return all(plain(item) for item in value)
        return value is None or type(value) in (str, bool, int, float)

    with contextlib.suppress(RecursionError):
        if isinstance(about, Mapping) and plain(about):
            return json.dumps(about, sort_keys=True)
    raise InvalidInput(
        "about must be a dictionary of plain values: texts, numbers, lists, and dictionaries whose keys are "
        "texts."
    )


def _counted(sql: str) -> str:
    """`SELECT a, b FROM t` as counts by a and b."""
    tree = _select(sql)
    places = [exp.Literal.number(str(place + 1)) for place in range(len(tree.expressions))]
    count = exp.alias_(exp.Count(this=exp.Star()), "n")
    return tree.select(count).group_by(*places).sql(DIALECT)


def _ranked(sql: str) -> str:
    """`SELECT a FROM t` as a question about the ranks of a."""
    tree = _select(sql)
    if len(tree.expressions) != 1:
        raise QueryError("A tree is about one column, such as SELECT age FROM adult.")
    median = exp.Median(this=tree.expressions[0].unalias().copy())
    tree.set("expressions", [exp.alias_(median, "x")])
    return tree.sql(DIALECT)
