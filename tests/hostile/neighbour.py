"""The property: no row decides anything but a number, and that by no more than is stated.

For two neighbouring databases in the same kind of store: they open alike; a question is accepted or refused
alike, succeeds alike, and has the same columns, types and public keys; every exact number (sums, units,
weights of keys, histograms, census, totals) moves by at most its declared norm; and no error holds a value of
a row.
"""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from incrowd import Curator, IncrowdError
from incrowd.backends import Backend, Statement, census_statement, release_statement
from incrowd.backends.statement import KEY_MASS, weight_cap
from incrowd.curator import preparing
from incrowd.curator.request import Request
from incrowd.query import Leaf
from tests.backends.houses import Numbers, capped


@dataclass(frozen=True)
class Limits:
    """What an analyst may say beside the question, and which caps a census may have chosen."""

    rows: int | None = None
    groups: int | None = None
    l2: bool = False
    cells: int = 0
    generous: int = 1

    @staticmethod
    def draw(rng: random.Random) -> Limits:
        """Any of them."""
        return Limits(
            rng.choice([None, 1, 1, 3]),
            rng.choice([None, 1, 2]),
            rng.random() < 0.5,
            rng.choice([0, 0, 1, 2, 5, 21, 45]),
            rng.choice([0, 1, 5]),
        )


class Broken(AssertionError):  # noqa: N818
    """The property does not hold: what differs, in a word, and the evidence."""

    def __init__(self, what: str, evidence: object) -> None:
        super().__init__(f"{what}: {evidence}")
        self.what = what


@dataclass(frozen=True)
class Outcome:
    """What a step did: a value, or an error."""

    value: Any = None
    error: Exception | None = None

    def __str__(self) -> str:
        return "no error" if self.error is None else f"{type(self.error).__name__}: {self.error}"[:600]


def attempt(step: Callable[[], Any]) -> Outcome:
    """A step's outcome."""
    try:
        return Outcome(step())
    except Exception as error:
        return Outcome(None, error)


def said(error: BaseException) -> Iterator[str]:
    """Everything that an error tells whoever catches it, with those it came from, hidden ones too."""
    seen: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        current = queue.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield from (
            str(current),
            repr(current),
            repr(current.args),
            *map(str, getattr(current, "__notes__", ())),
        )
        queue += [current.__cause__, current.__context__]
    yield "".join(traceback.format_exception(error))


def check_silence(outcome: Outcome, secrets: Sequence[str], public: str = "") -> None:
    """No error holds a value of the hostile unit, unless the analyst wrote it herself."""
    if outcome.error is None:
        return
    told = "\n".join(said(outcome.error))
    for secret in secrets:
        if secret not in public and secret in told:
            raise Broken("an error quotes a row", f"{secret!r} in {told[:800]!r}")


def _words(error: Exception | None) -> tuple[type, str]:
    """An error's kind and words, but for the names that the two sides' own tables and schemas were given."""
    return type(error), re.sub(r"_[0-9a-f]{12}\b", "", str(error))


def check_alike(one: Outcome, two: Outcome, secrets: Sequence[str], public: str = "") -> bool:
    """Both steps succeed, or both refuse in the same words; whether they succeed."""
    for outcome in (one, two):
        check_silence(outcome, secrets, public)
        if outcome.error is not None and not isinstance(outcome.error, IncrowdError):
            raise Broken("an error that is none of ours", outcome) from outcome.error
    if (one.error is None) != (two.error is None):
        raise Broken("one succeeds, the other does not", f"without: {one}; with: {two}")
    if one.error is not None and _words(one.error) != _words(two.error):
        raise Broken("two refusals differ", f"without: {one}; with: {two}")
    return one.error is None


def _spelled(value: Any) -> Any:
    """A key so that two spellings of a value differ: 0.0 and -0.0 are shown, and so is a NaN's sign."""
    return repr(value) if isinstance(value, float) else value


def numbers(engine: Backend, statement: Statement) -> tuple[Numbers, pa.Schema]:
    """A statement's numbers, by group as it would be shown, and the columns of its result."""
    result = engine.run(statement.tree)
    keys = []
    for index in range(statement.keys):
        column = result.column(f"k{index}")
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        keys.append([_spelled(value) for value in column.to_pylist()])
    width = sum(name[0] == "n" and name[1:].isdigit() for name in result.column_names)
    columns = [result.column(f"n{place}").to_pylist() for place in range(width)]
    values: dict[tuple[int, int], dict[tuple[Any, ...], int]] = {}
    cells = result.column("cell").to_pylist()
    for row, part in enumerate(result.column("part").to_pylist()):
        group = (*(column[row] for column in keys), cells[row])
        for place, column in enumerate(columns):
            by_group = values.setdefault((part, place), {})
            if group in by_group:
                raise Broken("two lines for one group", group)
            by_group[group] = column[row] or 0
    return Numbers(statement, values), result.schema


def _reach(leaf: Leaf, name: str, kind: str, place: int, large: dict[str, float]) -> tuple[int, int]:
    """How far one unit may move a column, and in which norm."""
    if kind == "totals":
        measure = leaf.measures[name]
        return weight_cap(measure) if place == 0 else weight_cap(measure, large[name]), 1
    if name == "keys":
        return KEY_MASS, leaf.norm
    return leaf.measures[name].sensitivity_steps, leaf.measures[name].norm


def check_numbers(leaf: Leaf, large: dict[str, float], one: Numbers, two: Numbers) -> None:
    """No column moves further than the noise is made for."""
    for index, part in enumerate(one.statement.parts):
        names = part.columns * 2 if part.kind == "totals" else part.columns
        for place, name in enumerate(names):
            if name == "nothing":
                continue
            reach, norm = _reach(leaf, name, part.kind, place, large)
            moved = one.moved(two, index, place, norm)
            if moved > (reach * leaf.distance) ** norm:
                label = "the weights of keys" if name == "keys" else leaf.measures[name].label
                far = moved ** (1 / norm) / reach / leaf.distance
                raise Broken("a number moves too far", f"{part.kind} of {label}: {far:.4g} times its bound")


def check_census(leaf: Leaf, one: Numbers, two: Numbers) -> None:
    """One unit is in one cell of each histogram of weights."""
    for index, _ in enumerate(one.statement.parts):
        width = sum(part == index for part, _ in one.values)
        counts = [
            [next(iter(side.values[index, place].values()), 0) for place in range(width)]
            for side in (one, two)
        ]
        cells = [[a - b for a, b in zip(tails, [*tails[1:], 0], strict=True)] for tails in counts]
        moved = sum(abs(a - b) for a, b in zip(*cells, strict=True))
        if moved > leaf.distance:
            raise Broken("a number moves too far", f"the census by {moved}, not {leaf.distance}")


def _run(pair: Sequence[Curator], statement: Statement, secrets: Sequence[str], sql: str) -> list[Numbers]:
    made = [attempt(lambda side=side: numbers(side._backend, statement)) for side in pair]  # type: ignore[misc]
    for outcome in made:
        if isinstance(outcome.error, Broken):
            raise outcome.error
    if not check_alike(made[0], made[1], secrets, sql):
        raise Broken("an accepted question always fails", made[0])
    (one, first), (two, second) = made[0].value, made[1].value
    if first != second:
        raise Broken("columns or types differ", f"{first} and {second}")
    return [one, two]


def check_leaf(pair: Sequence[Curator], leaf: Leaf, limits: Limits, secrets: Sequence[str], sql: str) -> None:
    """The exact numbers of a leaf, on both sides."""
    if limits.l2 and leaf.units and leaf.keys:
        leaf = leaf.in_l2()
    listed = [attempt(lambda side=side: preparing.public_keys(leaf, side._backend)) for side in pair]  # type: ignore[misc]
    if check_alike(listed[0], listed[1], secrets, sql):
        # As text: NaN is not equal to itself.
        shown = [repr(None if side.value is None else side.value.to_pydict()) for side in listed]
        if shown[0] != shown[1]:
            raise Broken("public keys differ", listed)
    bounded, large = capped(leaf, limits.cells, limits.generous)
    check_numbers(bounded, large, *_run(pair, release_statement(bounded, large), secrets, sql))
    if leaf.uncapped:
        check_census(leaf, *_run(pair, census_statement(leaf), secrets, sql))


def _answers(pair: Sequence[Curator], sql: str, limits: Limits, secrets: Sequence[str]) -> None:
    """The whole way, noise and all: what is seen has the same shape on both sides."""
    made = [
        attempt(lambda side=side: side.ask(sql, epsilon=1.0, contribution=limits.rows, groups=limits.groups))  # type: ignore[misc]
        for side in pair
    ]
    if not check_alike(made[0], made[1], secrets, sql):
        return
    one, two = (outcome.value.to_arrow() for outcome in made)
    if one.schema != two.schema:
        raise Broken("columns or types differ", f"{one.schema} and {two.schema}")


def check_question(
    pair: Sequence[Curator], sql: str, limits: Limits, secrets: Sequence[str] = (), whole: bool = False
) -> bool:
    """Whether a question is accepted; Broken where the two sides tell more than noisy numbers."""
    # A plan is made of the catalog and public columns, which check_opening found alike.
    request = Request(sql, contribution=limits.rows, groups=limits.groups)
    plan = attempt(lambda: pair[0].prepare(request).plan)
    if not check_alike(plan, plan, secrets, sql):
        return False
    for leaf in plan.value.leaves:
        # What an engine cannot prove to be total is refused before anything is spent. The other side proves
        # what it runs.
        proven = attempt(lambda leaf=leaf: preparing.prove(leaf, pair[0]._backend))  # type: ignore[misc]
        if not check_alike(proven, proven, secrets, sql):
            return False
        check_leaf(pair, leaf, limits, secrets, sql)
    if whole:
        _answers(pair, sql, limits, secrets)
    return True


def check_opening(one: Outcome, two: Outcome, secrets: Sequence[str], broken: bool = False) -> bool:
    """Whether both sides open. A file that rows make malformed may be refused, but not quoted."""
    if broken and any(isinstance(outcome.error, IncrowdError) for outcome in (one, two)):
        check_silence(one, secrets)
        check_silence(two, secrets)
        return False
    if not check_alike(one, two, secrets):
        return False
    if one.value._fields != two.value._fields:
        raise Broken("columns or types differ", "those of the public tables")
    return True


@dataclass
class Tally:
    """What was tried on an engine, and what was found."""

    engine: str
    unwritable: int = 0
    opened: int = 0
    kept_shut: int = 0
    tried: int = 0
    accepted: int = 0
    refused: int = 0
    broken: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The tally as a line of a table."""
        return (
            f"{self.engine:12} {self.opened:8,} {self.kept_shut:9,} {self.tried:9,} {self.accepted:9,} "
            f"{self.refused:8,} {len(self.broken):7,}"
        )


HEADING = (
    f"{'':12} {'opened':>8} {'kept shut':>9} {'questions':>9} {'accepted':>9} {'refused':>8} {'broken':>7}"
)
