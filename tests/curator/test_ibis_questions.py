"""Questions as ibis expressions are the questions that their SQL asks."""

from __future__ import annotations

import datetime as dt

import ibis
import pyarrow as pa
import pytest
from ibis import _

from incrowd import Curator
from incrowd.curator.ibis_questions import as_sql
from incrowd.errors import InvalidInput, QueryError

VISITS = pa.table(
    {
        "patient": pa.array([1, 1, 2, 3], pa.int64()),
        "day": [dt.date(2024, 1, 1), dt.date(2024, 2, 1), dt.date(2024, 2, 2), dt.date(2024, 3, 1)],
        "ward": ["north", "south", "north", "north"],
        "cost": [10.0, 20.0, 400.0, 30.0],
        "diagnosis": ["flu", "cold", "flu", "flu"],
    }
)
PATIENTS = pa.table({"patient": [1, 2, 3], "sex": ["female", "male", "female"]})
VISIT = ibis.table(
    {"patient": "int64", "day": "date", "ward": "!string", "cost": "float64", "diagnosis": "string"}, "visits"
)
PATIENT = ibis.table({"patient": "int64", "sex": "string"}, "patients")

SAME = [
    (VISIT.count(), "SELECT COUNT(*) FROM visits"),
    (VISIT.patient.nunique(), "SELECT COUNT(DISTINCT patient) FROM visits"),
    (
        VISIT.group_by("ward").agg(n=_.count(), cost=_.cost.mean()),
        "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ward",
    ),
    (
        VISIT.filter(_.cost > 10).group_by("ward").agg(total=_.cost.sum()).order_by(ibis.desc("total")),
        "SELECT ward, SUM(cost) AS total FROM (SELECT * FROM visits WHERE cost > 10) GROUP BY ward",
    ),
    (VISIT.agg(n=_.count(where=_.cost > 100)), "SELECT COUNT(*) FILTER (WHERE cost > 100) AS n FROM visits"),
]
ANSWERED = [
    VISIT.cost.median(),
    VISIT.group_by("ward").agg(q=_.cost.quantile(0.9), s=_.cost.std()),
    VISIT.group_by(month=_.day.truncate("M")).agg(n=_.count()),
    VISIT.mutate(month=_.day.month()).group_by("month").agg(people=_.patient.nunique()),
    VISIT.join(PATIENT, "patient").group_by("sex").agg(cost=_.cost.mean()),
    VISIT.group_by(size=ibis.cases((_.cost > 100, "high"), else_="low")).agg(n=_.count()),
    VISIT.group_by("ward").agg(n=_.count()).mutate(share=_.n / _.n.sum()),
    VISIT.group_by("ward").having(_.count() > 5).agg(n=_.count()),
    VISIT.agg(mean=_.cost.clip(0, 500).mean()),
    VISIT.filter(_.diagnosis.isin(["flu", "cold"])).diagnosis.value_counts(),
    VISIT.filter(_.day.between("2024-01-01", "2024-12-31")).count(),
]


@pytest.fixture
def curator() -> Curator:
    return Curator.from_tables(
        visits=VISITS,
        patients=PATIENTS,
        unit="patient",
        bounds={"visits.cost": (0, 20_000), "visits.day": ("2020-01-01", "2029-12-31")},
        domains={"visits.ward": ["north", "south"], "patients.sex": ["female", "male"]},
        not_null=["visits.ward"],
        budget=(3.0, 1e-6),
    )


def test_tables_have_the_declared_columns_and_no_rows(curator: Curator) -> None:
    assert curator.table("VISITS").equals(VISIT)
    assert curator.table("patients").equals(PATIENT)


@pytest.mark.parametrize(("expression", "sql"), SAME)
def test_an_expression_is_on_record_as_what_its_sql_asks(
    curator: Curator, expression: ibis.Expr, sql: str
) -> None:
    """Whoever asked in SQL gets the same answer in ibis, free."""
    asked = curator.ask(sql, epsilon=0.1)
    again = curator.ask(expression, epsilon=0.1)
    assert again.recalled
    assert again.numbers() == asked.numbers()


@pytest.mark.parametrize("expression", ANSWERED)
def test_ordinary_expressions_are_priced(curator: Curator, expression: ibis.Expr) -> None:
    assert curator.price(expression, epsilon=0.1).epsilon == 0.1


def test_rows_are_no_answer(curator: Curator) -> None:
    with pytest.raises(QueryError, match="would show the rows of people"):
        curator.ask(curator.table("visits").limit(5), epsilon=0.1)
    assert "no row was read" in str(curator.ask(curator.table("visits").limit(0), epsilon=0.1))
    assert curator.budget()[0].spent.epsilon == 0


def test_what_ibis_cannot_write_is_refused_in_one_sentence() -> None:
    with pytest.raises(QueryError, match=r"^ibis cannot write this expression as SQL for DuckDB \(.*\)\.$"):
        as_sql(VISIT.agg(c=_.cost.corr(_.patient)))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("visit", "perhaps you mean visits"), (3, "the name of a table"), (None, "the name of a table")],
)
def test_a_table_that_is_not_there_is_told(curator: Curator, name: object, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        curator.table(name)


def test_whatever_is_no_expression_stays_as_it_is() -> None:
    assert as_sql("SELECT 1") == "SELECT 1"
    assert as_sql(None) is None
    deferred = _.cost.mean()
    assert as_sql(deferred) is deferred
