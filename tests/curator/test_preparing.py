"""Parse and bound: the public groups of a question, the public tables beside it, and its fingerprint."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd import BackendError, Curator, QueryError
from incrowd.curator import preparing, pricing
from incrowd.curator.affording import price_of
from incrowd.curator.preparing import Prepared, chosen_delta, prove, public_fields, public_keys
from incrowd.curator.request import Request
from incrowd.query import Field, Key, Leaf

PEOPLE = pa.table(
    {
        "id": [1, 1, 2],
        "age": [20, 30, 40],
        "pay": [1.0, 2.5, 3.0],
        "sex": ["f", "f", "m"],
        "town": ["york", "hull", "york"],
    }
)
TOWNS = pa.table({"name": ["york", "hull", "york"], "floor": [1, 2, 3], "raw": [b"a", b"b", b"c"]})


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with pytest.warns(UserWarning, match="raw is left out"):
        made = Curator.from_tables(
            people=PEOPLE,
            towns=TOWNS,
            unit="id",
            bounds={"age": (0, 100)},
            domains={"sex": ["f", "m"], "town": "towns.name"},
            public=["towns"],
            budget=(5.0, 1e-6),
        )
    with made:
        yield made


def prepared(curator: Curator, sql: str, **options: Any) -> Prepared:
    return curator.prepare(Request(sql, **options))


def keys(curator: Curator, sql: str) -> list[tuple[Any, ...]] | None:
    (table,) = prepared(curator, sql).keys
    return None if table is None else [tuple(row.values()) for row in table.to_pylist()]


def listed(*domains: tuple[Any, ...]) -> Leaf:
    """A leaf whose keys have these values."""
    named = tuple(Key(f"k{i}", exp.column("x"), "integer", values=values) for i, values in enumerate(domains))
    return Leaf(exp.select("1"), (), False, named, {}, (), 1, ("t",))


DOMAINS = st.lists(st.lists(st.none() | st.integers(-5, 5), max_size=5).map(tuple), min_size=1, max_size=3)


@given(DOMAINS)
@settings(max_examples=40)
def test_public_keys_are_the_product_of_their_domains_in_order(domains: list[tuple[int | None, ...]]) -> None:
    table = public_keys(listed(*domains), None)  # type: ignore[arg-type]
    assert table is not None
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert set(rows) == set(itertools.product(*domains)) and len(rows) == len(set(rows))
    assert rows == sorted(rows, key=lambda row: [(value is None, value or 0) for value in row])


def test_declared_and_looked_up_domains_are_combined(curator: Curator) -> None:
    combined = keys(curator, "SELECT sex, town, COUNT(*) FROM people GROUP BY sex, town")
    assert combined is not None
    assert set(combined) >= set(itertools.product(["f", "m"], ["hull", "york"]))
    assert len(combined) == len(set(combined))


def test_listed_values_are_the_groups(curator: Curator) -> None:
    sql = "SELECT age, COUNT(*) FROM people WHERE age IN (30, 20, 30) GROUP BY age"
    assert keys(curator, sql) == [(20,), (30,)]


def test_without_a_key_or_with_a_private_one_no_group_is_listed(curator: Curator) -> None:
    assert keys(curator, "SELECT COUNT(*) FROM people") is None
    assert keys(curator, "SELECT pay, COUNT(*) FROM people GROUP BY pay") is None
    assert keys(curator, "SELECT sex, pay, COUNT(*) FROM people GROUP BY sex, pay") is None


def test_too_many_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "MOST_GROUPS", 6)
    leaf = listed((1, 2, 3), (4, 5))
    table = public_keys(leaf, None)  # type: ignore[arg-type]
    assert table is not None and table.num_rows == 6
    named = replace(
        leaf, keys=tuple(replace(key, label=label) for key, label in zip(leaf.keys, "ab", strict=True))
    )
    monkeypatch.setattr(preparing, "MOST_GROUPS", 5)
    with pytest.raises(QueryError) as refused:
        public_keys(named, None)  # type: ignore[arg-type]
    assert str(refused.value) == (
        "The domains of a, b make 6 groups, and each would be answered; group by fewer or coarser keys."
    )


COUNT = "SELECT sex, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY sex"


def fingerprint(curator: Curator, sql: str, epsilon: float = 1.0, **options: Any) -> str:
    question = prepared(curator, sql, epsilon=epsilon, **options)
    return question.fingerprint(price_of(question, curator.catalog))


@pytest.mark.parametrize(
    "spelling",
    [
        "select sex, count(*) as n from people where age > 30 group by sex",
        "SELECT  sex,\n COUNT( * ) AS n -- how many\nFROM people WHERE age > 30 GROUP BY sex",
        "SELECT people.sex, COUNT(*) AS n FROM people WHERE people.age > 30 GROUP BY people.sex",
        "SELECT sex, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY 1;",
        "SELECT p.sex AS s, COUNT(*) AS m FROM people AS p WHERE p.age > 30 GROUP BY 1 ORDER BY 2 LIMIT 1",
    ],
)
def test_two_spellings_of_a_question_have_one_fingerprint(curator: Curator, spelling: str) -> None:
    assert fingerprint(curator, spelling) == fingerprint(curator, COUNT)


def test_another_question_or_price_has_another_fingerprint(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sums over so few groups are never scaled back up, so turning that off would be the same question.
    assert fingerprint(curator, COUNT, rescale=False) == fingerprint(curator, COUNT)
    monkeypatch.setattr(pricing, "SCALED_GROUPS", 1)
    prints = [
        fingerprint(curator, COUNT),
        fingerprint(curator, COUNT, 1.5),
        fingerprint(curator, COUNT, confidence=0.9),
        fingerprint(curator, COUNT, contribution=2),
        fingerprint(curator, COUNT, contribution=3),
        fingerprint(curator, COUNT, rescale=False),
        fingerprint(curator, COUNT.replace("30", "31")),
        fingerprint(curator, COUNT.replace("COUNT(*)", "SUM(age)")),
    ]
    assert len(set(prints)) == len(prints)
    assert all(len(text) == 64 + 1 + 16 + 1 + 64 for text in prints)


def test_a_delta_that_is_not_spent_changes_no_fingerprint(curator: Curator) -> None:
    assert fingerprint(curator, COUNT, delta=0.0) == fingerprint(curator, COUNT, delta=1e-7)
    private = COUNT.replace("sex", "pay")
    assert fingerprint(curator, private, delta=1e-8) != fingerprint(curator, private, delta=1e-7)


def test_who_asks_changes_no_fingerprint(curator: Curator) -> None:
    question = prepared(curator, COUNT, epsilon=1.0)
    other = replace(question, request=replace(question.request, analyst="ana"))
    price = price_of(question, curator.catalog)
    assert other.fingerprint(price) == question.fingerprint(price)


def test_the_requests_delta_wins_over_the_sqls_and_that_over_the_owners(curator: Curator) -> None:
    named = COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=1e-8)", 1)

    def delta(sql: str, asked: float | None = None) -> float:
        question = prepared(curator, sql, delta=asked)
        return chosen_delta(question.plan, question.request, curator.catalog)

    assert delta(named, 1e-9) == 1e-9 and delta(named, 0.0) == 0.0
    assert delta(named) == 1e-8
    assert delta(COUNT) == curator.catalog.default_delta


def test_public_tables_beside_the_numbers_come_with_the_question(curator: Curator) -> None:
    sql = f"SELECT t.n, towns.floor FROM ({COUNT}) AS t JOIN towns ON towns.name = t.sex"
    assert prepared(curator, COUNT).public == {}
    (table,) = prepared(curator, sql).public.values()
    assert table.column("floor").to_pylist() == [1, 2, 3]


def test_fields_are_known_for_public_tables_only(curator: Curator) -> None:
    fields = public_fields(curator.catalog, curator.backend)
    assert set(fields) == {"towns"}
    assert fields["towns"]["name"] == Field("text", name="towns.name")
    assert fields["towns"]["floor"].kind == "integer" and "raw" not in fields["towns"]


class Suspicious:
    """An engine that can prove nothing."""

    def prove(self, tree: exp.Expr) -> None:
        raise BackendError(tree.sql("duckdb"))


def test_the_first_statement_is_proved(curator: Curator) -> None:
    """The census where a cap is open, else the release itself."""
    (leaf,) = prepared(curator, COUNT).plan.leaves
    (capped,) = prepared(curator, COUNT, contribution=2).plan.leaves
    assert leaf.uncapped and not capped.uncapped
    prove(leaf, curator.backend)
    prove(capped, curator.backend)
    said = []
    for asked in (leaf, capped):
        with pytest.raises(BackendError) as refused:
            prove(asked, Suspicious())  # type: ignore[arg-type]
        said.append(str(refused.value))
    assert str(2**45) in said[0] and str(2**45) not in said[1]
