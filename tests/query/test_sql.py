"""From text to a tree: the clause and the named arguments are taken out, and nothing else is lost."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.sql import (
    MOST_LISTED,
    ContributionBounds,
    Question,
    bounds_of,
    count_bounds,
    number,
    parse,
)

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY"


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (f"{CLAUSE} COUNT(*) FROM t", {}),
        (f"{CLAUSE} OPTIONS(epsilon=0.5) COUNT(*) FROM t", {"epsilon": 0.5}),
        (
            (
                f"{CLAUSE} OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=3, "
                f"max_rows_contributed=2) COUNT(*) FROM t"
            ),
            {"epsilon": 1.0, "delta": 1e-7, "max_groups_contributed": 3.0, "max_rows_contributed": 2.0},
        ),
        ("select with differential_privacy options (EPSILON = 2) COUNT(*) FROM t", {"epsilon": 2.0}),
        ("SELECT COUNT(*) FROM t", {}),
    ],
)
def test_the_clause_becomes_options_and_leaves_the_text(sql: str, options: dict[str, float]) -> None:
    question = parse(sql)
    assert dict(question.options) == options
    assert question.tree.sql() == "SELECT COUNT(*) FROM t"


@settings(max_examples=60)
@given(st.text(max_size=30), st.integers(0, 20))
def test_any_text_is_read_or_refused_in_a_sentence(noise: str, place: int) -> None:
    base = f"{CLAUSE} OPTIONS(epsilon=1) SUM(x, contribution_bounds_per_row => (0, 1)) FROM t"
    text = base[: place * 4] + noise + base[place * 4 :]
    try:
        parse(text)
    except QueryError as refusal:
        assert str(refusal).endswith(".") and "\n" not in str(refusal)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "The question is empty; write a SELECT"),
        ("  ", "The question is empty"),
        (
            "SELECT 1; SELECT 2",
            "Ask one question at a time: several statements were given; ask each by itself",
        ),
        ("SELECT '\0'", "holds a NUL character; leave it out."),
        ("SELECT '\ud800'", "holds half a character"),
        ("SELECT '\udfff'", "holds half a character"),
        ("DROP TABLE t", "Only SELECT can be asked"),
        ("DESCRIBE t", "Only SELECT can be asked"),
        (None, "The question must be SQL as text, such as SELECT COUNT(*) FROM people, not None."),
        (7, "not a value of type int."),
        (b"SELECT 1", "The question is bytes; make it text first, such as sql.decode()."),
        (";; ;", "The question is empty"),
        ("-- nothing but a remark", "The question is empty"),
        ("SELECT 1 /* open", "a quotation mark or a comment in it is not closed; close it."),
        ("SELECT COUNT(*) FROM", "near FROM (line 1, column 20), something is missing or misspelled there."),
        ("SELECT COUNT(* FROM t", "near FROM (line 1, column 19), expecting )."),
        ("EXPLAIN SELECT 1", "Only SELECT can be asked"),
        ("PIVOT t ON a USING COUNT(*)", "PIVOT and UNPIVOT work on released numbers only: write SELECT"),
        ("SELECT * FROM (UNPIVOT t ON a)", "PIVOT and UNPIVOT work on released numbers only"),
        ("SELECT * FROM t PIVOT (COUNT(*) FOR a IN (0))", "PIVOT and UNPIVOT work on released numbers only"),
        ("SELECT COUNT(*) FROM t WHERE a = ?", "? stands for a value that was not given; write the value"),
        ("SELECT COUNT(*) FROM t WHERE a = $1", "$1 stands for a value that was not given"),
        ("SELECT FROM WHERE", "The SQL cannot be read: "),
        ("SELECT 'a", "The SQL cannot be read: "),
        (f"{CLAUSE} OPTIONS(rho=1) COUNT(*) FROM t", "The option rho is not known; use delta, epsilon"),
        (f"{CLAUSE} OPTIONS(epsilon=1, epsilon=2) COUNT(*) FROM t", "The option epsilon is given twice."),
        (
            f"{CLAUSE} OPTIONS(epsilon='a') COUNT(*) FROM t",
            "The option epsilon needs a number, as in epsilon=1.",
        ),
        (f"{CLAUSE} OPTIONS(epsilon>1) COUNT(*) FROM t", "The option epsilon needs a number"),
        (f"{CLAUSE} OPTIONS epsilon", "OPTIONS needs a list in parentheses"),
        (f"{CLAUSE} OPTIONS", "OPTIONS needs a list in parentheses"),
        (f"{CLAUSE} OPTIONS(epsilon=1", "OPTIONS needs a list such as"),
        (f"{CLAUSE} OPTIONS(epsilon=1 delta=2) COUNT(*) FROM t", "OPTIONS needs a list such as"),
        ("SELECT __named__SUM(x) FROM t", "are reserved; rename it."),
        (
            "SELECT SUM(x, bounds => (0, 1)) FROM t",
            "The argument bounds of SUM is not known; use contribution_bounds_per_group or",
        ),
        (
            (
                "SELECT SUM(x, contribution_bounds_per_row => (0, 1), contribution_bounds_per_group => "
                "(0, 1)) FROM t"
            ),
            "Give SUM one kind of contribution bounds, per group or per row.",
        ),
        (
            "SELECT SUM(x, contribution_bounds_per_row => (1, 0)) FROM t",
            "needs two numbers, low and high, as in (0, 100).",
        ),
        ("SELECT SUM(x, contribution_bounds_per_row => 5) FROM t", "needs two numbers"),
        ("SELECT SUM(x, contribution_bounds_per_row => (0, y)) FROM t", "needs two numbers"),
        ("SELECT SUM(x, contribution_bounds_per_row => (0, 1, 2)) FROM t", "needs two numbers"),
        ("SELECT SUM(x, contribution_bounds_per_row => (1e999, 1e999)) FROM t", "needs two numbers"),
        (
            "SELECT LOG(1, 2, 3, 4, contribution_bounds_per_row => (0, 1)) FROM t",
            "does not take these arguments.",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(sql: Any, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        parse(sql)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 3000 + "1" + ")" * 3000,
        "(" * 3000 + "SELECT 1" + ")" * 3000,
        "SELECT " + "[" * 3000 + "1" + "]" * 3000,
        "SELECT " + "ABS(" * 55 + "1" + ")" * 55,
        "SELECT " + "CASE WHEN a THEN " * 3000 + "1" + " END" * 3000,
        "SELECT COUNT(*) FROM t WHERE " + "NOT " * 3000 + "a",
        "SELECT COUNT(*)" + " + 1" * 3000 + " FROM t",
        "SELECT COUNT(*) FROM t WHERE a" + " OR a" * 3000,
        "SELECT 1" + " UNION ALL SELECT 1" * 3000,
    ],
)
def test_a_deep_question_is_refused_at_once(sql: str) -> None:
    began = time.process_time()
    with pytest.raises(QueryError, match="nested too deeply to be read; write it in smaller steps"):
        parse(sql)
    # They took 11 to 191 seconds; a busy machine needs up to two for what a quiet one does in a third of one.
    assert time.process_time() - began < 5


def test_ordinary_depth_is_read() -> None:
    parse("SELECT " + "(" * 20 + "COUNT(*)" + ")" * 20 + " + 1" * 100 + " FROM t")
    parse(f"SELECT COUNT(*) FROM t WHERE a IN ({', '.join(map(str, range(5000)))})")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1;",
        ";SELECT 1;;",
        "SELECT 1; -- done",
        "/* a */ SELECT 1 /* b */ ; /* c */ ;",
        "SELECT 1 -- ;",
    ],
)
def test_semicolons_and_comments_around_a_question_are_no_part_of_it(sql: str) -> None:
    assert parse(sql) == parse("SELECT 1")


def test_comments_and_outer_parentheses_are_no_part_of_a_question() -> None:
    assert parse("((SELECT /* a */ COUNT(*) -- b\n FROM t))").tree == parse("SELECT COUNT(*) FROM t").tree
    assert isinstance(parse("SELECT a FROM t UNION SELECT b FROM t").tree, exp.SetOperation)
    assert parse("SELECT differential_privacy, anonymization FROM t").tree.named_selects == [
        "differential_privacy",
        "anonymization",
    ]
    assert parse("WITH anonymized AS (SELECT 1) SELECT COUNT(*) FROM anonymized").tree is not None


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("1", 1.0),
        ("-2.5", -2.5),
        ("(3)", 3.0),
        ("-(-4)", 4.0),
        ("1e308", 1e308),
        ("1e999", None),
        ("'1'", None),
        ("x", None),
        ("-x", None),
        ("1 + 1", None),
    ],
)
def test_a_number_is_a_literal_with_signs_and_parentheses(sql: str, value: float | None) -> None:
    (node,) = parse(f"SELECT {sql}").tree.expressions
    assert number(node) == value


@pytest.mark.parametrize(
    ("name", "per"), [("contribution_bounds_per_row", "row"), ("CONTRIBUTION_BOUNDS_PER_GROUP", "group")]
)
def test_bounds_stay_with_the_aggregate_and_out_of_the_sql(name: str, per: str) -> None:
    bounded = parse(f"SELECT SUM(x, {name} => (-1, 2.5)) FROM t").tree
    plain = parse("SELECT SUM(x) FROM t").tree
    aggregate = bounded.find(exp.Sum)
    assert aggregate is not None and bounds_of(aggregate) == ContributionBounds(per, -1.0, 2.5)  # type: ignore[arg-type]
    assert count_bounds(bounded) == count_bounds(bounded.copy()) == 1 and count_bounds(plain) == 0
    assert bounded.sql() == plain.sql()


@pytest.mark.parametrize("sql", ["(SELECT COUNT(*) FROM t) LIMIT 1", "((SELECT COUNT(*) FROM t) LIMIT 1)"])
def test_parentheses_that_carry_a_clause_are_not_taken_off(sql: str) -> None:
    with pytest.raises(QueryError, match="Only SELECT can be asked"):
        parse(sql)


def listed(values: int) -> str:
    return "SELECT COUNT(*) FROM t WHERE a IN (" + ", ".join(map(str, range(values))) + ") AND b IN (1, 2)"


def test_a_long_list_is_refused_before_it_is_planned() -> None:
    assert isinstance(parse(listed(MOST_LISTED)), Question)
    for sql in (
        listed(MOST_LISTED + 1),
        listed(300_000),
        f"SELECT * FROM (VALUES (1){', (1)' * 20_000}) AS v",
    ):
        with pytest.raises(QueryError) as told:
            parse(sql)
        assert str(told.value) == (
            "A list in the SQL holds more than 20,000 values; let the owner put them into a public table, "
            "and JOIN that."
        )


def test_lists_are_counted_each_by_itself() -> None:
    parse("SELECT COUNT(*) FROM t WHERE " + " OR ".join(f"a IN ({k}, 1, (2))" for k in range(900)))
