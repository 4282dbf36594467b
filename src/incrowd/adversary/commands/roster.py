"""The list of attacks: names, one sentence each, and how a user's options reach the function.

Knows neither the command line nor what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from incrowd.adversary.attacks.averaging import averaging
from incrowd.adversary.attacks.differencing import differencing
from incrowd.adversary.attacks.floating_point import floating_point
from incrowd.adversary.attacks.k_anonymity import QUASI_IDENTIFIERS, k_anonymity
from incrowd.adversary.attacks.linkage import linkage
from incrowd.adversary.attacks.name_and_shame import name_and_shame
from incrowd.adversary.attacks.outcome import Report
from incrowd.adversary.attacks.reconstruction import reconstruction
from incrowd.adversary.attacks.tracing import tracing
from incrowd.adversary.data.crowd import KNOWN
from incrowd.adversary.data.ratings import generated_ratings, ratings_of
from incrowd.data import adult
from incrowd.errors import InvalidInput

LEAST_PEOPLE = 10
LINKED = ("user", "item", "day", "stars")


@dataclass(frozen=True)
class Wish:
    """The options of `incrowd attack`; None where one was left out."""

    table: pa.Table | None = None
    people: int | None = None
    known: tuple[str, ...] | None = None
    secret: str | None = None
    epsilon: float | None = None
    seed: int | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that were set, by name."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Entry:
    """One attack of the list."""

    name: str
    about: str
    """What it shows, in one sentence."""
    function: Callable[..., Report]
    takes: Mapping[str, str]
    """The options that it takes, each with the function's parameter for it."""
    columns: tuple[str, ...] = ()
    """The columns that the function reads by default; the bundled census has them."""

    def run(self, wish: Wish) -> Report:
        """Run the attack with these options; refuse an option that it does not take."""
        for name in wish.chosen:
            if name not in self.takes:
                raise InvalidInput(
                    f"{self.name} has no use for --{_option(name)}: leave it out ({_uses(self)})."
                )
        if wish.people is not None and wish.people < LEAST_PEOPLE:
            raise InvalidInput(f"--people must be at least {LEAST_PEOPLE}, not {wish.people}.")
        self._check_columns(wish)
        return self.function(**{self.takes[name]: value for name, value in wish.chosen.items()})

    def _check_columns(self, wish: Wish) -> None:
        if wish.table is None or {"known", "secret"} - set(self.takes) or (wish.known and wish.secret):
            return
        missing = [name for name in self.columns if name not in wish.table.column_names]
        if missing:
            sought = "a column" if self.name == "k-anonymity" else "a condition in SQL"
            raise InvalidInput(
                f"Say with --known which columns of the file the attacker knows, and with --secret what she "
                f"is after ({sought}); the file has {', '.join(wish.table.column_names)}."
            )


def _option(name: str) -> str:
    return "file" if name == "table" else name


def _uses(entry: Entry) -> str:
    return "it takes " + ", ".join(f"--{_option(name)}" for name in entry.takes)


def _averaging(*, epsilon: float | None = None, **options: Any) -> Report:
    """Averaging with a budget for four answers, which is also the function's default."""
    return (
        averaging(**options) if epsilon is None else averaging(epsilon=epsilon, budget=4 * epsilon, **options)
    )


def _reconstruction(*, epsilon: float | None = None, **options: Any) -> Report:
    return reconstruction(**options) if epsilon is None else reconstruction(epsilons=(epsilon,), **options)


def _floating_point(*, epsilon: float | None = None, **options: Any) -> Report:
    return floating_point(**options) if epsilon is None else floating_point(epsilons=(epsilon,), **options)


def _tracing(
    *, table: pa.Table | None = None, people: int | None = None, epsilon: float = 1.0, seed: int = 0
) -> Report:
    """Tracing; without --people, a small table uses a quarter of its rows."""
    source = adult() if table is None else table
    most = source.num_rows - 2
    members = max(LEAST_PEOPLE, min(50, source.num_rows // 4)) if people is None else people
    if members > most:
        raise InvalidInput(
            f"--people must lie between {LEAST_PEOPLE} and {most}: the table has {source.num_rows} rows, and "
            "two people must stay out of the data."
        )
    return tracing(source, members=members, epsilons=(epsilon,), seed=seed)


def _linkage(
    *,
    table: pa.Table | None = None,
    people: int | None = None,
    known: tuple[str, ...] | None = None,
    **options: Any,
) -> Report:
    if table is None:
        if known is not None:
            raise InvalidInput("linkage makes up its table, so --known says nothing: give a --file too.")
        return linkage(None if people is None else generated_ratings(users=people), **options)
    if people is not None:
        raise InvalidInput("linkage looks among all people of a file: leave out --people, or the --file.")
    columns = LINKED if known is None else known
    if len(columns) != len(LINKED) or not set(columns) <= set(table.column_names):
        raise InvalidInput(
            "Name the file's columns of users, items, days and stars, in this order, as in --known "
            f"user,item,day,stars; the file has {', '.join(table.column_names)}."
        )
    return linkage(ratings_of(table, *columns), **options)


SAME = {name: name for name in ("table", "people", "known", "secret", "epsilon", "seed")}
CENSUS = (*KNOWN, "income")

ATTACKS: tuple[Entry, ...] = (
    Entry(
        "differencing",
        "One person's secret from counts of crowds, past suppression, refusals and rounding.",
        differencing,
        SAME,
        CENSUS,
    ),
    Entry(
        "averaging",
        "A noisy question asked again and again, until its noise wears off.",
        _averaging,
        SAME,
        CENSUS,
    ),
    Entry(
        "reconstruction",
        "Everybody's secret from many sums that are each a little wrong.",
        _reconstruction,
        SAME,
        CENSUS,
    ),
    Entry(
        "k-anonymity",
        "Values pinned down in k-anonymous tables, in one release and across two.",
        k_anonymity,
        {
            "table": "table",
            "known": "quasi_identifiers",
            "secret": "sensitive",
            "epsilon": "epsilon",
            "seed": "seed",
        },
        (*QUASI_IDENTIFIERS, "occupation"),
    ),
    Entry(
        "linkage",
        "Somebody's row in a sparse table without names, by a few rough facts.",
        _linkage,
        {name: name for name in ("table", "people", "known", "epsilon", "seed")},
    ),
    Entry(
        "tracing",
        "Who was in the data, from the means of many attributes.",
        _tracing,
        {name: name for name in ("table", "people", "epsilon", "seed")},
    ),
    Entry(
        "name-and-shame",
        "What a large delta permits: publishing whole records.",
        name_and_shame,
        SAME,
        CENSUS,
    ),
    Entry(
        "floating-point",
        "A hidden count from the last bits of textbook noise.",
        _floating_point,
        SAME,
        CENSUS,
    ),
)


def find(name: str) -> Entry:
    """The attack of this name.

    >>> find("tracing").about
    'Who was in the data, from the means of many attributes.'
    """
    wanted = name.strip().casefold().replace("_", "-").replace(" ", "-")
    for entry in ATTACKS:
        if entry.name == wanted:
            return entry
    raise InvalidInput(f"There is no attack {name!r}: choose from {', '.join(e.name for e in ATTACKS)}, all.")
