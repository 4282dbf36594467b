"""GoogleSQL's clause: every spelling of its options, in any SELECT, and nothing dropped in silence."""

from __future__ import annotations

import pytest
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.clause import Clause, clause_of
from incrowd.query.sql import parse

WITH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"


def clause(options: str) -> Clause:
    found = clause_of(parse(f"{WITH}({options}) COUNT(*) FROM t").tree)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("0.5", 0.5),
        ("1e-5", 1e-5),
        ("1E-5", 1e-5),
        ("1.5e+2", 150.0),
        (".1e1", 1.0),
        ("+.5", 0.5),
        ("-1", -1.0),
        ("- 1", -1.0),
        ("1_000", 1000.0),
        ("1e20", 1e20),
    ],
)
def test_a_number_may_be_spelled_in_any_way(written: str, value: float) -> None:
    assert clause(f"epsilon={written}, delta = {written}") == Clause(epsilon=value, delta=value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("max_groups_contributed=NULL, max_rows_contributed=null", Clause()),
        ("max_groups_contributed=3, max_rows_contributed=2", Clause(groups=3.0, rows=2.0)),
        ("kappa=3, k_threshold=50", Clause(groups=3.0, least_units=50.0)),
        ("min_privacy_units_per_group=5", Clause(least_units=5.0)),
        ("privacy_unit_column=user_id", Clause(unit=("user_id",))),
        ("privacy_unit_column=v.User_ID", Clause(unit=("v", "user_id"))),
        ('privacy_unit_column="user_id"', Clause(unit=("user_id",))),
        ("privacy_unit_column=`user_id`", Clause(unit=("user_id",))),
        ("group_selection_strategy=LAPLACE_THRESHOLD", Clause()),
        ("GROUP_SELECTION_STRATEGY=public_groups", Clause(public=True)),
        ("", Clause()),
    ],
)
def test_options_mean_what_they_say(options: str, said: Clause) -> None:
    assert clause(options) == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("epsilon=NULL", "The option epsilon needs a number, as in epsilon=1."),
        ("epsilon=1+1", "needs a number"),
        ("epsilon=1e999", "The option epsilon is too large; write a smaller number."),
        ("epsilon=abc", "needs a number"),
        ("epsilon=", "OPTIONS needs a list such as"),
        ("epsilon=1,", "OPTIONS needs a list such as"),
        ("kappa=1, max_groups_contributed=2", "The option max_groups_contributed is given twice."),
        ("privacy_unit_column=1", "needs the name of a column"),
        ("privacy_unit_column=a b", "needs the name of a column"),
        ("privacy_unit_column>a", "The option privacy_unit_column needs a name"),
        ("group_selection_strategy=GAUSSIAN", "is LAPLACE_THRESHOLD or PUBLIC_GROUPS; leave it out"),
        ("group_selection_epsilon=1", "The option group_selection_epsilon is not known; use delta, epsilon"),
    ],
)
def test_what_an_option_cannot_say_is_refused(options: str, said: str) -> None:
    with pytest.raises(QueryError, match=said.replace("(", r"\(")):
        clause(options)


@pytest.mark.parametrize("list_of", ["DISTINCT city", "ALL city", "city, COUNT(*) AS n", "*"])
def test_the_clause_stays_with_its_select_and_leaves_no_trace_in_it(list_of: str) -> None:
    with_clause = parse(f"SELECT a FROM ({WITH}(epsilon=2) {list_of} FROM t) AS q").tree
    assert with_clause == parse(f"SELECT a FROM (SELECT {list_of.removeprefix('ALL')} FROM t) AS q").tree
    held = [clause_of(select) for select in with_clause.copy().find_all(exp.Select)]
    assert held == [None, Clause(epsilon=2.0)]


def test_equal_clauses_may_stand_in_several_selects() -> None:
    one = f"{WITH}(epsilon=1, max_groups_contributed=2) COUNT(*) AS n FROM t"
    question = parse(f"{one} UNION ALL {one.replace('epsilon=1', 'epsilon = 1.0')}")
    assert (dict(question.options), question.clauses) == ({"epsilon": 1.0, "max_groups_contributed": 2.0}, 2)
    with pytest.raises(QueryError, match="clauses of this question differ; write the same options in each"):
        parse(f"{one} UNION ALL {one.replace('epsilon=1', 'epsilon=2')}")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) FROM t", "belongs right after SELECT"),
        ("WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) SELECT COUNT(*) FROM t", "cannot be read|right after"),
        (f"{WITH}(epsilon=1)", "The SELECT ends after WITH DIFFERENTIAL_PRIVACY"),
        (f"{WITH}(epsilon=1) FROM t", "cannot be read|names nothing after its clause"),
        ("SELECT __clause__0, 1 FROM t", "reserved; rename it"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT( FROM t", "The SQL cannot be read: near"),
    ],
)
def test_a_clause_elsewhere_is_refused_without_the_words_of_this_module(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said) as refusal:
        parse(sql)
    assert "__clause__0," not in str(refusal.value)
