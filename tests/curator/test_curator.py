"""The curator from end to end: answers, refusals, the record, and what an error leaves behind."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import (
    BackendError,
    BudgetExceeded,
    CatalogError,
    Curator,
    IncrowdError,
    InvalidInput,
    NotPermitted,
    QueryError,
)
from incrowd.curator.curator import FREE
from incrowd.curator.paying import Payment

rng = np.random.default_rng(7)
N = 3_000
PEOPLE = pa.table(
    {
        "id": rng.integers(0, 800, N),
        "age": rng.integers(18, 91, N),
        "sex": rng.choice(["f", "m"], N),
        "town": rng.choice(["york", "hull", "leeds"], N),
        "pay": rng.uniform(0, 100, N),
        "seen": [dt.date(2024, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 60, N)],
    }
)
TOWNS = pa.table({"town": ["york", "hull", "leeds"], "county": ["N", "E", "W"]})


def make(**changes: object) -> Curator:
    settings: dict[str, object] = {
        "unit": "id",
        "bounds": {"age": (18, 90), "pay": (0, 100), "seen": (dt.date(2024, 1, 1), dt.date(2024, 2, 29))},
        "domains": {"sex": ["f", "m"]},
        "budget": (20.0, 1e-5),
        "public": ["towns"],
        **changes,
    }
    return Curator.from_tables(people=PEOPLE, towns=TOWNS, **settings)


def truth(column: str, by: str) -> dict[object, float]:
    return PEOPLE.to_pandas().groupby(by)[column].mean().to_dict()


def test_an_answer_comes_as_every_kind_of_frame_with_intervals() -> None:
    with make() as curator:
        answer = curator.ask("SELECT sex, AVG(age) AS age FROM people GROUP BY sex", epsilon=5.0)
        assert list(answer.to_pandas().columns) == ["sex", "age"]
        assert answer.to_polars(intervals=0.9).columns == ["sex", "age", "age_low", "age_high"]
        table = answer.to_arrow(intervals=0.99)
        for row in table.to_pylist():
            if row["sex"] is not None:
                assert row["age_low"] <= row["age"] <= row["age_high"]
                assert abs(row["age"] - truth("age", "sex")[row["sex"]]) < 8
        assert "<table>" in answer._repr_html_() and "age" in str(answer)
        assert answer.cost.epsilon(1e-7) <= 5.0
        assert answer.remaining[0].spent.epsilon is not None


def test_the_same_question_is_free_and_identical() -> None:
    with make() as curator:
        first = curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1.0)
        spent = curator.budget()[0].spent
        again = curator.ask("select count(*)   as N from PEOPLE", epsilon=1.0)
        assert again.recalled and not first.recalled
        assert again.to_arrow(0.9).to_pylist() == first.to_arrow(0.9).to_pylist()
        assert curator.budget()[0].spent == spent
        assert not curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1.5).recalled


def test_a_budget_of_three_admits_six_asks_of_a_half_and_refuses_the_seventh_without_a_trace() -> None:
    with make(budget=(3.0, 1e-6), unit="row") as curator:
        for bound in range(6):
            curator.ask(f"SELECT COUNT(*) FROM people WHERE age > {20 + bound}", epsilon=0.5)
        before = (curator.budget(), curator.ledger.head())
        with pytest.raises(BudgetExceeded) as caught:
            curator.ask("SELECT COUNT(*) FROM people WHERE age > 60", epsilon=0.5)
        assert "0.5" in caught.value.asked and caught.value.left
        assert (curator.budget(), curator.ledger.head()) == before


BAD = {
    "": "empty",
    "SELEC 1": "SQL",
    "DROP TABLE people": "Only SELECT",
    "SELECT 1; SELECT 2": "one question",
    "SELECT * FROM people": "rows of people",
    "SELECT age FROM people WHERE id = 3": "rows of people",
    "SELECT COUNT(*) FROM nowhere": "nowhere",
    "SELECT SUM(salary) FROM people": "salary",
    "SELECT id, COUNT(*) FROM people GROUP BY id": "protected unit",
    "SELECT AVG(x.age) FROM people x JOIN people y ON x.town = y.town": "protected unit",
    "SELECT COUNT(*) FROM people WHERE random() < 0.5": "another value",
    "SELECT COUNT(*) FROM towns": "public",
    "SELECT SUM(age) OVER () FROM people": "rows of people|window|Window",
    "SELECT MEDIAN(town) FROM people": "number",
    "SELECT town || id, COUNT(*) FROM people GROUP BY 1": "text|unit",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column=town) COUNT(*) FROM people": "owner",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilonn=1) COUNT(*) FROM people": "epsilonn",
    "SELECT AVG(age, contribution_bounds => (0, 1)) FROM people": "contribution_bounds",
    "SELECT sex, COUNT(*) + nope FROM people GROUP BY sex": "nope",
    "SELECT COUNT(*) AS a, SUM(age) AS a FROM people": "called a",
}


@pytest.mark.parametrize("question", BAD)
def test_a_bad_question_gets_one_sentence_and_spends_nothing(question: str) -> None:
    with make() as curator:
        before = curator.ledger.head()
        with pytest.raises(InvalidInput, match=BAD[question]) as caught:
            curator.ask(question, epsilon=1.0)
        assert curator.ledger.head() == before
        assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_a_missing_bound_names_the_column() -> None:
    with make(bounds={}) as curator, pytest.raises(QueryError, match="pay"):
        curator.ask("SELECT SUM(pay) FROM people", epsilon=1.0)


def test_bounds_may_come_with_the_question() -> None:
    with make(bounds={}) as curator:
        asked = "SELECT SUM(pay, contribution_bounds_per_group => (0, 900)) AS s FROM people"
        total = curator.ask(asked, epsilon=8.0).to_arrow().column("s")[0].as_py()
        assert abs(total - PEOPLE.to_pandas().pay.sum()) < 20_000
        clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, max_rows_contributed=20)"
        answer = curator.ask(f"SELECT {clause} COUNT(*) AS n FROM people")
        assert answer.price.epsilon == 2.0
        assert abs(answer.to_arrow().column("n")[0].as_py() - N) < 400


def test_public_keys_all_appear_and_private_ones_only_when_many_share_them() -> None:
    with make() as curator:
        days = curator.ask("SELECT seen, COUNT(*) AS n FROM people GROUP BY seen", epsilon=1.0)
        assert len(days) == 61  # sixty days and NULL
        months = curator.ask(
            "SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) AS n FROM people GROUP BY m", epsilon=2.0
        )
        assert [row["m"] for row in months.to_arrow().to_pylist()] == [
            dt.date(2024, 1, 1),
            dt.date(2024, 2, 1),
            None,
        ]
        listed = curator.ask(
            "SELECT town, COUNT(*) FROM people WHERE town IN ('york', 'nowhere') GROUP BY town",
            epsilon=1.0,
            delta=0.0,
        )
        assert listed.to_arrow().column("town").to_pylist() == ["nowhere", "york"]
        bought = curator.ask("SELECT town, COUNT(*) FROM people GROUP BY town", epsilon=2.0, delta=1e-6)
        assert set(bought.to_arrow().column("town").to_pylist()) <= {"york", "hull", "leeds"}


def test_joins_sub_queries_and_post_processing_work() -> None:
    with make() as curator:
        joined = curator.ask(
            "SELECT county, AVG(age) AS a FROM people JOIN towns ON people.town = towns.town GROUP "
            "BY county ORDER BY county",
            epsilon=4.0,
        )
        assert [row["county"] for row in joined.to_arrow().to_pylist() if row["county"]] == ["E", "N", "W"]
        per_person = curator.ask(
            "WITH visits AS (SELECT id, COUNT(*) AS n FROM people GROUP BY id) SELECT AVG(LEAST(n, "
            "10)) AS v FROM visits",
            epsilon=4.0,
        )
        assert 3 < per_person.to_arrow().column("v")[0].as_py() < 5
        shares = curator.ask(
            "SELECT sex, n, n / SUM(n) OVER () AS share FROM (SELECT sex, COUNT(*) AS n FROM people "
            "WHERE sex IN ('f', 'm') "
            "GROUP BY sex) ORDER BY share DESC LIMIT 1",
            epsilon=2.0,
        )
        assert len(shares) == 1 and 0.4 < shares.to_arrow().column("share")[0].as_py() < 0.7
        labelled = curator.ask(
            "SELECT c.county, x.n FROM (SELECT town, COUNT(*) AS n FROM people WHERE town IN "
            "('york', 'hull') GROUP BY town) x "
            "JOIN towns c ON c.town = x.town ORDER BY 1",
            epsilon=2.0,
        )
        assert labelled.to_arrow().column("county").to_pylist() == ["E", "N"]


def test_several_quantiles_cost_as_one() -> None:
    with make() as curator:
        one = curator.price("SELECT MEDIAN(age) FROM people", epsilon=1.0, delta=0.0, contribution=10)
        ranks = "QUANTILE_CONT(age, 0.25) AS a, MEDIAN(age) AS b, QUANTILE_CONT(age, 0.75) AS c"
        three = f"SELECT {ranks} FROM people"
        several = curator.price(three, epsilon=1.0, delta=0.0, contribution=10)
        assert len(one.lines) == len(several.lines) == 1
        row = curator.ask(three, epsilon=4.0, delta=0.0, contribution=10).to_arrow().to_pylist()[0]
        assert row["a"] <= row["b"] <= row["c"]


def test_max_says_what_it_is() -> None:
    with make() as curator:
        answer = curator.ask("SELECT MAX(age) AS m FROM people", epsilon=2.0)
        assert any("one person alone" in note for note in answer.notes)


def test_heavy_units_are_scaled_back_and_the_answer_says_so() -> None:
    people = np.concatenate((np.arange(200_000) % 4_000, rng.integers(4_000, 200_000, 200_000)))
    heavy = pa.table({"id": people, "kind": rng.integers(0, 400, 400_000)})
    with Curator.from_tables(t=heavy, unit="id", bounds={"kind": (0, 399)}, budget=(20.0, 1e-6)) as curator:
        sql = "SELECT kind, COUNT(*) AS n FROM t GROUP BY kind"
        answer = curator.ask(sql, epsilon=0.3)
        assert 1.5 < answer.factors["COUNT(*)"] < 2.3
        assert any("scaled back up" in note for note in answer.notes)
        assert curator.ask(sql, epsilon=0.3, rescale=False).factors == {}
        # With little noise, scaling far would add more error than it saves.
        assert curator.ask(sql, epsilon=10.0).factors.get("COUNT(*)", 1.0) < 1.1


def test_a_failure_in_the_database_keeps_the_price_spent_and_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, file)
    (tmp_path / "curator.yaml").write_text(
        "sources: {files: {parquet: people.parquet}}\n"
        "tables: {people: {unit: id, columns: {id: {type: integer}}}}\n"
        "budget: {epsilon: 2, delta: 1.0e-6}\n"
    )
    with Curator.open(tmp_path / "curator.yaml", new_ledger=True) as curator:
        claim = Payment.claim

        def damaged(*arguments: Any) -> Payment:
            file.write_bytes(file.read_bytes()[:2_000])
            return claim(*arguments)

        monkeypatch.setattr(Payment, "claim", damaged)
        with pytest.raises(BackendError) as caught:
            curator.ask("SELECT COUNT(*) FROM people", epsilon=0.5)
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        spent = curator.budget()[0].spent.epsilon
        assert spent and curator.ledger.verify().ok
        with pytest.raises(CatalogError, match="not a Parquet file"):
            curator.ask("SELECT COUNT(*) FROM people", epsilon=0.25)
        assert curator.budget()[0].spent.epsilon == spent


def test_the_ledger_outlives_the_curator(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    (tmp_path / "curator.yaml").write_text(
        "sources: {files: {parquet: people.parquet}}\n"
        "tables: {people: {unit: id, columns: {id: {type: integer}, sex: {type: text, domain: [f, m]}}}}\n"
        "budget: {epsilon: 2, delta: 1.0e-6}\n"
        "analysts: {ana: {epsilon: 1}, bob: {epsilon: 1}}\n"
        "sharing: all\n"
    )
    question = "SELECT sex, COUNT(DISTINCT id) AS n FROM people GROUP BY sex"
    with Curator.open(tmp_path / "curator.yaml", new_ledger=True) as curator:
        first = curator.ask(question, epsilon=0.5, analyst="ana").to_arrow(0.95)
        with pytest.raises(NotPermitted, match="eve"):
            curator.ask(question, epsilon=0.5, analyst="eve")
        with pytest.raises(NotPermitted, match="analyst="):
            curator.ask(question, epsilon=0.5)
    with Curator.open(tmp_path / "curator.yaml") as curator:
        again = curator.ask(question, epsilon=0.5, analyst="bob")
        assert again.recalled and again.to_arrow(0.95).equals(first)
        assert curator.budget("bob")[-1].spent.epsilon == 0
        pq.write_table(PEOPLE.slice(0, 2_000), tmp_path / "people.parquet")
    with Curator.open(tmp_path / "curator.yaml") as curator:
        assert not curator.ask(question, epsilon=0.5, analyst="bob").recalled


def test_empty_tables_and_tables_without_units_are_answered() -> None:
    empty = PEOPLE.slice(0, 0)
    nobody = PEOPLE.set_column(0, "id", pa.array([None] * N, pa.int64()))
    for table in (empty, nobody):
        with Curator.from_tables(
            people=table, unit="id", bounds={"age": (18, 90)}, budget=(30.0, 1e-6)
        ) as curator:
            for question in (
                "SELECT COUNT(*) AS n FROM people",
                "SELECT AVG(age), MEDIAN(age), STDDEV(age) FROM people",
                "SELECT COUNT(DISTINCT id) AS n FROM people",
            ):
                assert len(curator.ask(question, epsilon=2.0)) == 1
            assert len(curator.ask("SELECT town, COUNT(*) FROM people GROUP BY town", epsilon=2.0)) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "table"),
        ({"people": PEOPLE, "unit": "person"}, "person"),
        ({"people": PEOPLE, "bounds": {"agee": (0, 1)}}, "agee"),
        ({"people": [1, 2]}, "data frame"),
        ({"people": PEOPLE, "budget": (0, 0)}, "budget"),
    ],
)
def test_a_wrong_set_up_is_one_sentence(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(IncrowdError, match=said):
        Curator.from_tables(**arguments)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"missing\.yaml"):
        Curator.open(tmp_path / "missing.yaml")


def test_a_plot_has_a_mark_for_every_interval() -> None:
    with make() as curator:
        answer = curator.ask(
            "SELECT sex, AVG(age) AS age, COUNT(*) AS n FROM people GROUP BY sex", epsilon=4.0
        )
        spec = answer.plot().to_dict()
        assert "facet" in spec
        with pytest.raises(InvalidInput, match="nothing to plot"):
            curator.ask("SELECT DISTINCT sex FROM people", epsilon=1.0).plot()


def test_gaussian_asks_do_not_close_the_way_of_plain_sums() -> None:
    with make(budget=(3.0, 1e-6)) as curator:
        days = "SELECT seen, COUNT(DISTINCT id) AS n FROM people GROUP BY seen"
        answer = curator.ask(days, epsilon=0.5)
        assert {line.noise for line in answer.price.lines} >= {"gaussian"}
        spent = curator.budget()[0].spent
        assert spent.epsilon is not None and spent == answer.price.charge
        for bound in range(5):
            curator.ask(f"SELECT COUNT(DISTINCT id) FROM people WHERE age > {20 + bound}", epsilon=0.5)
        with pytest.raises(BudgetExceeded):
            curator.ask("SELECT COUNT(DISTINCT id) FROM people WHERE age > 60", epsilon=0.5)
        assert curator.ledger.verify().ok


def test_a_column_without_nulls_makes_no_group_of_them() -> None:
    with make(not_null=["people.sex"]) as curator:
        answer = curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1.0)
        assert answer.to_arrow().column("sex").to_pylist() == ["f", "m"]
    with pytest.raises(CatalogError, match="sexx"):
        make(not_null=["sexx"])


def test_a_harmless_difference_in_spelling_costs_nothing() -> None:
    people = pa.table({"id": range(9), "a": range(9)})
    curator = Curator.from_tables(people=people, unit="id", bounds={"a": (0, 9)}, budget=(1.0, 0.0))
    curator.ask("SELECT COUNT(*) AS n FROM people WHERE a > 1", epsilon=1.0, contribution=1)
    for spelling in (
        "SELECT COUNT(*) AS n FROM people WHERE (a > 1)",
        "select count(*) n from PEOPLE where ((A) > (1)); -- again",
    ):
        assert curator.ask(spelling, epsilon=1.0, contribution=1).recalled
    with pytest.raises(BudgetExceeded):
        curator.ask("SELECT COUNT(*) AS n FROM people WHERE NOT (a > 1)", epsilon=1.0, contribution=1)


@pytest.mark.parametrize("tables", [[PEOPLE], "people", 7])
def test_tables_that_are_no_mapping_are_refused_in_words(tables: object) -> None:
    with pytest.raises(InvalidInput, match="tables must map names to data frames"):
        Curator.from_tables(tables=tables)  # type: ignore[arg-type]


@pytest.mark.parametrize("ledger", ["x" * 5000, "x\0", "\ud800", "postgresql://ana:ses@me@host/x"])
def test_a_ledger_where_none_can_be_is_refused_in_a_short_sentence(ledger: str) -> None:
    with pytest.raises(InvalidInput, match="ledger cannot be kept there: ") as told:
        make(ledger=ledger, new_ledger=True)
    assert len(str(told.value)) < 100 and "me@" not in str(told.value)


def test_other_ranks_of_the_same_rows_are_free_afterwards() -> None:
    with make() as curator:
        first = curator.ask("SELECT MEDIAN(pay) AS middle FROM people", epsilon=4.0)
        spent = curator.budget()[0].spent
        asked = (
            "SELECT QUANTILE_CONT(pay, 0.2) AS fifth, MAX(pay) + 1 AS top, MEDIAN(pay) AS middle FROM people"
        )
        assert FREE in curator.price(asked, epsilon=4.0).notes
        later = curator.ask(asked, epsilon=4.0)
        assert later.recalled and curator.budget()[0].spent == spent
        assert later.to_pandas(0.95).middle_low[0] == first.to_pandas(0.95).middle_low[0]
        table = later.to_pandas(0.95)
        assert table.middle[0] == first.to_pandas().middle[0]
        # The weighted fifth is 20 but for how units differ, which moves it by less than 8.
        assert table.fifth_low[0] - 8 < 20 < table.fifth_high[0] + 8 and table.fifth[0] < table.middle[0]
        assert table.top_low[0] <= table.top[0] <= table.top_high[0]


@pytest.mark.parametrize(
    "other",
    [
        "SELECT QUANTILE_CONT(pay, 0.2) AS x FROM people WHERE age < 40",
        "SELECT QUANTILE_CONT(pay, 0.2) FILTER (WHERE age < 40) AS x FROM people",
        "SELECT QUANTILE_CONT(age, 0.2) AS x FROM people",
        "SELECT QUANTILE_CONT(pay / 2, 0.2) AS x FROM people",
        "SELECT QUANTILE_CONT(LEAST(pay, 99), 0.2) AS x FROM people",
        "SELECT QUANTILE_CONT(pay, 0.2) AS x, COUNT(*) AS n FROM people",
        "SELECT sex, QUANTILE_CONT(pay, 0.2) AS x FROM people GROUP BY sex",
    ],
)
def test_ranks_of_other_rows_are_not_on_record(other: str) -> None:
    with make() as curator:
        curator.ask("SELECT MEDIAN(pay) AS middle FROM people", epsilon=1.0)
        assert FREE not in curator.price(other, epsilon=1.0).notes
        for changes in (
            {"epsilon": 0.5},
            {"epsilon": 1.0, "confidence": 0.9},
            {"epsilon": 1.0, "contribution": 3},
        ):
            assert FREE not in curator.price("SELECT MEDIAN(pay) AS middle FROM people", **changes).notes


def test_quantiles_of_dates_and_timestamps_come_back_as_such() -> None:
    days = np.arange(4_000) % 8_000
    began = [dt.date(1960, 1, 1) + dt.timedelta(days=int(day)) for day in days]
    seen = [dt.datetime(1969, 12, 31, 12) + dt.timedelta(seconds=60 * int(day)) for day in days]
    table = pa.table({"began": began, "seen": pa.array(seen, pa.timestamp("us")), "g": days % 2})
    bounds = {
        "began": (dt.date(1950, 1, 1), dt.date(1999, 12, 31)),
        "seen": (dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 5)),
    }
    with Curator.from_tables(t=table, bounds=bounds, domains={"g": [0, 1]}, budget=(1e3, 0.0)) as curator:
        sql = "MEDIAN(began) AS b, MAX(began) - MIN(began) AS days, MEDIAN(seen) AS s, YEAR(MAX(began)) AS y"
        answer = curator.ask(f"SELECT {sql} FROM t", epsilon=100.0)
        assert [str(kind) for kind in answer.to_arrow().schema.types[::2]] == ["date32[day]", "timestamp[us]"]
        (row,) = answer.to_arrow(0.95).to_pylist()
        assert row["b_low"] <= row["b"] <= row["b_high"]
        assert abs(row["b"] - began[2_000]) <= dt.timedelta(days=10)
        assert abs(row["s"] - seen[2_000]) <= dt.timedelta(minutes=10)
        assert 3_800 < row["days"] < 4_000 and row["days_low"] <= row["days"] <= row["days_high"]
        assert row["y"] == 1970
        grouped = curator.ask("SELECT g, MIN(seen) AS s FROM t GROUP BY g", epsilon=100.0)
        assert all(
            line["s_low"] <= line["s"] <= line["s_high"] for line in grouped.to_arrow(0.95).to_pylist()
        )
        for wrong in ("AVG(began)", "MEDIAN(DATE_TRUNC('month', began))"):
            with pytest.raises(QueryError, match="date"):
                curator.price(f"SELECT {wrong} AS x FROM t", epsilon=1.0)
