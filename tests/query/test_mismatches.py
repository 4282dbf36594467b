"""Conditions that no row can meet are named before anything is paid; conditions that rows can meet never are.

The model is the statement that would run: on rows that keep to the declarations, it finds none.
"""

from __future__ import annotations

import itertools

import duckdb
import pytest

from incrowd.catalog import check
from incrowd.query import Plan, bound, parse

COLUMNS = {
    "id": {"type": "integer", "nullable": False},
    "age": {"type": "integer", "bounds": [0, 5]},
    "pay": {"type": "float", "bounds": [-1, 2.5]},
    "grade": {"type": "integer", "domain": [1, 2, 5]},
    "kind": {"type": "text", "domain": ["card", "cash"]},
    "free": {"type": "text"},
    "day": {"type": "date", "bounds": ["2024-01-01", "2024-01-04"]},
    "seen": {"type": "timestamp", "bounds": ["2024-01-01 00:00:00", "2024-01-02 12:00:00"]},
    "town": {"type": "text", "domain": {"from": "towns.name"}},
}
CATALOG = check(
    {
        "sources": {"people": {"frame": "people"}, "towns": {"frame": "towns"}},
        "tables": {
            "people": {"source": "people", "unit": "id", "columns": COLUMNS},
            "towns": {"source": "towns", "private": False, "columns": {"name": {"type": "text"}}},
        },
        "budget": {"epsilon": 1},
    }
)
ENGINE = duckdb.connect(":memory:")
ENGINE.execute(
    "CREATE TABLE people AS SELECT *, 'bonn' AS town FROM (VALUES (1), (2)) i(id), "
    "(VALUES (0), (1), (4), (5), (NULL)) a(age), (VALUES (-1.0::DOUBLE), (0), (2.5)) p(pay), "
    "(VALUES (1), (2), (5)) g(grade), (VALUES ('card'), ('cash'), (NULL)) k(kind), (VALUES ('x')) f(free), "
    "(VALUES (DATE '2024-01-01'), (DATE '2024-01-04')) d(day), "
    "(VALUES (TIMESTAMP '2024-01-01'), (TIMESTAMP '2024-01-02 12:00:00')) t(seen)"
)
CONSTANTS = {
    "age": ["-1", "0", "3", "5", "6", "2.5", "4.5", "5.5", "- 2"],
    "pay": ["-2", "-1", "0", "2.5", "2.6", "1e9", "-1.0"],
    "grade": ["1", "3", "5", "0", "6", "2.0"],
    "kind": ["'card'", "'Card'", "'credit'", "''", "'cash '"],
    "free": ["'x'", "'y'"],
    "day": ["'2023-12-31'", "'2024-01-01'", "'2024-01-04'", "DATE '2024-01-05'", "'2024-01-04 10:00'"],
    "seen": ["'2024-01-02 12:00'", "'2024-01-02'", "'2024-01-03'", "TIMESTAMP '2023-12-31 23:59:59'"],
    "age + grade": ["0", "1", "10", "11", "12"],
    "MONTH(day)": ["0", "1", "12", "13"],
    "CASE WHEN age > 2 THEN 'old' ELSE 'young' END": ["'old'", "'elder'"],
}
TESTS = [
    f"{subject} {sign} {constant}"
    for subject, constants in CONSTANTS.items()
    for constant, sign in itertools.product(constants, ("=", "<>", "<", "<=", ">", ">="))
    if "'" not in constant or sign in ("=", "<>") or subject in ("day", "seen")
]
TESTS += [
    f"{subject} BETWEEN {low} AND {high}"
    for subject in ("age", "pay", "day", "seen")
    for low, high in itertools.product(CONSTANTS[subject], repeat=2)
]
TESTS += [f"{one} AND NOT ({two})" for one, two in itertools.pairwise(TESTS[::9])]


def plan_of(condition: str) -> Plan:
    return bound(parse(f"SELECT COUNT(*) FROM people WHERE {condition}"), CATALOG)


def warned(condition: str) -> tuple[str, ...]:
    return plan_of(condition).warnings


@pytest.mark.parametrize("condition", TESTS)
def test_what_is_doubted_matches_no_row_or_all_that_have_a_value(condition: str) -> None:
    for doubt in plan_of(condition).doubts:
        if doubt.condition.endswith("..."):
            continue
        meant = f"NOT ({doubt.condition})" if doubt.unlike else doubt.condition
        rows = plan_of(meant).leaves[0].rows.sql("duckdb")
        assert ENGINE.execute(f"SELECT COUNT(*) FROM ({rows})").fetchone() == (0,), doubt.sentence


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("kind = 'credit-card'", "kind can only be 'card' or 'cash'; did you mean 'card'?"),
        ("kind <> 'crad'", "leaves out no row"),
        ("kind IN ('cash', 'crad')", "'crad' in kind IN ('cash', 'crad') matches no row"),
        ("kind LIKE 'crad'", "did you mean 'card'?"),
        ("grade = 4", "grade can only be 1, 2 or 5; did you mean 5, 2 or 1?"),
        ("age > 200", "age lies between 0 and 5."),
        ("200 < age", "age lies between 0 and 5."),
        ("age BETWEEN 6 AND 9", "age lies between 0 and 5."),
        ("age BETWEEN 4 AND 2", "write BETWEEN 2 AND 4."),
        ("day >= 'last week'", "'last week' is no day that exists"),
        ("day = '2024-02-30'", "is no day that exists"),
        ("day BETWEEN 'x' AND '2024-01-02'", "'x' is no day that exists"),
        ("day > '2024-01-04'", "day lies between '2024-01-01' and '2024-01-04'."),
        ("kind = NULL", "write kind IS NULL"),
        ("age = 1 OR (pay < 0 AND kind = 'crad')", "kind = 'crad' matches no row"),
        ("CASE WHEN kind = 'crad' THEN TRUE ELSE FALSE END", "kind = 'crad' matches no row"),
    ],
)
def test_a_condition_that_no_row_can_meet_is_named(condition: str, said: str) -> None:
    (sentence,) = warned(condition)
    assert said in sentence


@pytest.mark.parametrize(
    "condition",
    [
        "kind = 'cash'",
        "kind LIKE 'c%'",
        "kind IS NULL",
        "free = 'whatever'",
        "age >= 5",
        "id = 4711",
        "age = grade",
        "day < '2024-01-02' AND pay <= -1",
        "UPPER(kind) = 'CASH'",
        "kind NOT IN ('cash')",
    ],
)
def test_a_condition_that_rows_can_meet_is_not(condition: str) -> None:
    assert warned(condition) == ()


def test_a_domain_in_a_public_table_is_left_to_be_looked_up() -> None:
    plan = plan_of("town = 'Bon'")
    (doubt,) = plan.doubts
    assert plan.warnings == () and doubt.domain is not None
    decided = doubt.among(["bonn", "köln"])
    assert decided is not None and decided.sentence.endswith("did you mean 'bonn'?")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT id, kind AS k FROM people) WHERE k = 'crad'",
        "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM people WHERE kind = 'crad' GROUP BY id)",
        "SELECT COUNT(*) FILTER (WHERE kind = 'crad') FROM people",
        "WITH cards AS (SELECT * FROM people WHERE kind = 'crad') SELECT AVG(age) FROM cards",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM people WHERE kind = 'crad') WHERE n > 10",
    ],
)
def test_it_is_found_wherever_it_stands_and_said_once(sql: str) -> None:
    (sentence,) = bound(parse(sql), CATALOG).warnings
    assert "= 'crad' matches no row" in sentence


def test_what_is_asked_of_released_numbers_is_not_doubted() -> None:
    sql = "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind HAVING COUNT(*) > 1000000"
    assert bound(parse(sql), CATALOG).warnings == ()


def test_warnings_are_few() -> None:
    assert len(warned(" OR ".join(f"age = {number}" for number in range(10, 40)))) == 5


def test_two_questions_that_differ_in_warnings_alone_are_one() -> None:
    assert plan_of("age > 200").fingerprint == plan_of("(age > 200)").fingerprint
