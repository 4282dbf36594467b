"""Tuning: one reservation buys proposals that are no promises, and questions that need no census."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import Curator
from incrowd.backends import Snapshot
from incrowd.catalog import dump, parse
from incrowd.curator import tuning
from incrowd.errors import BackendError, BudgetExceeded, InvalidInput
from tests.backends.spark_houses import LOCAL

IDS = [*range(100), *(patient for patient in range(100, 200) for _ in range(4))]
"""A hundred patients with one visit, a hundred with four."""
VISITS = pa.table(
    {
        "patient": IDS,
        "day": [dt.date(2026, 1, 1 + place % 28) for place in range(len(IDS))],
        "cost": [20.0 + place % 10 for place in range(len(IDS))],
        "ward": [("north", "south")[patient % 2] for patient in IDS],
    }
)
COLUMNS = {
    "patient": {"type": "integer"},
    "day": {"type": "date"},
    "cost": {"type": "float", "bounds": [0, 10_000]},
    "ward": {"type": "text"},
}
ALMOST_EXACT = 1e4
"""An epsilon with which noise is none: whatever is tested with it fails by chance less than once in 10^9."""
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT SUM(cost) AS n FROM visits",
    "SELECT MEDIAN(cost) AS n FROM visits",
    "SELECT ward, SUM(cost) AS n FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n FROM (SELECT patient, cost FROM visits WHERE cost > 22)",
)


def curator_of(visits: pa.Table = VISITS, **changes: Any) -> Curator:
    settings: dict[str, Any] = {
        "unit": "patient",
        "bounds": {"visits.cost": (0.0, 10_000.0)},
        "budget": (1e6, 1e-6),
        **changes,
    }
    return Curator.from_tables(visits=visits, **settings)


@pytest.fixture
def curator() -> Iterator[Curator]:
    with curator_of() as opened:
        yield opened


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Curator]:
    """The curator of the same visits on every engine."""
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    visits: dict[str, Any] = {"source": request.param, "unit": "patient", "columns": COLUMNS}
    sources: dict[str, Any] = {"duckdb": {"parquet": "visits.parquet"}, "spark": {"url": LOCAL}}
    if request.param == "postgres":
        sources["postgres"] = {"url": request.getfixturevalue("postgres_database")}
        with psycopg.connect(sources["postgres"]["url"]) as owner, owner.cursor() as cursor:
            cursor.execute("CREATE TABLE visits (patient bigint, day date, cost float8, ward text)")
            cursor.executemany(
                "INSERT INTO visits VALUES (%s, %s, %s, %s)",
                [tuple(row.values()) for row in VISITS.to_pylist()],
            )
    if request.param == "spark":
        visits["path"] = str(tmp_path / "visits.parquet")
    content = {
        "sources": {request.param: sources[request.param]},
        "tables": {"visits": visits},
        "budget": {"epsilon": 1e6, "delta": 1e-6},
    }
    (tmp_path / "curator.yaml").write_text(json.dumps(content))
    with Curator.open(tmp_path / "curator.yaml", new_ledger=True) as opened:
        yield opened


def test_proposals_fit_what_units_contribute(anywhere: Curator) -> None:
    profile = anywhere.tune(ALMOST_EXACT)
    proposed = {".".join(proposal.path[1:]): proposal.value for proposal in profile.proposals}
    # 4 rows; a total of at most 4 * 29 is below 128, a value below 29 below 10,000 / 2^8 = 39.1.
    assert proposed == {
        "visits.contribution": 4,
        "visits.columns.cost.contribution": 128,
        "visits.columns.cost.bounds": (0.0, 39.1),
        "visits.columns.ward.domain": ("north", "south"),
    }
    said = [proposal.interval for proposal in profile.proposals if proposal.field != "domain"]
    assert said == ["no unit has more", "no unit has more", "no unit has values outside"]
    assert profile.epsilon == ALMOST_EXACT and not profile.recalled and profile.remarks == ()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_question_after_tuning_needs_no_census_and_one_pass(
    curator: Curator, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def passes() -> int:
        count = 0
        run = Snapshot.run

        def counted(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            return run(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(Snapshot, "run", counted)
            curator.ask(sql, 1.0, delta=1e-9)
        return count

    assert "census" in [line.kind for line in curator.price(sql, 1.0, delta=1e-9).lines]
    before = passes()
    curator.tune(ALMOST_EXACT)
    assert "census" not in [line.kind for line in curator.price(sql, 1.0, delta=1e-9).lines]
    assert passes() == before - 1


def test_answers_are_narrower_after_tuning(curator: Curator) -> None:
    """By the census's third of epsilon alone, whatever the noise: both caps are those of octaves."""

    def width(sql: str) -> float:
        answer = curator.ask(sql, 500.0, delta=0.0).to_arrow(0.95)
        return float(answer.column("n_high")[0].as_py() - answer.column("n_low")[0].as_py())

    before = width(QUESTIONS[1])
    curator.tune(ALMOST_EXACT)
    assert width(QUESTIONS[1]) < before / 1.25
    assert curator.price(QUESTIONS[0], 1.0).halfwidths["n"] == pytest.approx(4 * 2.996, rel=1e-3)


def test_a_bought_cap_says_how_many_units_exceed_it_and_a_declared_one_does_not(curator: Curator) -> None:
    curator.tune(ALMOST_EXACT)
    answer = curator.ask(QUESTIONS[0], 1.0)
    assert answer.caps == {"COUNT(*)": 4.0} and answer.beyond == {"COUNT(*)": 0}
    assert "no unit would count for more" in str(answer)
    # The owner writes a smaller number in its place: the census says that a hundred have more.
    table = curator.catalog.tables["visits"].model_copy(update={"contribution": 2})
    lower = curator.catalog.model_copy(update={"tables": {"visits": table}})
    with Curator(lower, curator.backend, curator.ledger) as other:
        answer = other.ask(QUESTIONS[0], 1.0)
        assert answer.caps == {"COUNT(*)": 2.0} and answer.beyond == {"COUNT(*)": 100}
        # Without its entry the number is a promise.
        declared = lower.model_copy(update={"bought": {}})
        answer = Curator(declared, curator.backend, curator.ledger).ask(QUESTIONS[0], 1.0)
        assert answer.caps == {"COUNT(*)": 2.0} and answer.beyond == {}


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 1.0])
def test_a_price_knows_the_cap_that_the_answer_states(curator: Curator, epsilon: float) -> None:
    """At 0.05 a cap that about 20 units exceed would do, and at 0.01 one that 100 units exceed."""
    curator.tune(ALMOST_EXACT)
    for sql in QUESTIONS[:2]:
        price, answer = curator.price(sql, epsilon), curator.ask(sql, epsilon)
        assert price.caps == answer.caps and price.halfwidths["n"] is not None
    rows = 4.0 if epsilon > 0.01 else 1.0
    assert curator.price(QUESTIONS[0], epsilon).caps == {"COUNT(*)": rows}
    assert curator.ask(QUESTIONS[0], epsilon).beyond == {"COUNT(*)": 0 if rows == 4 else 100}


def test_rows_that_a_join_multiplies_are_counted_anew(curator: Curator) -> None:
    curator.tune(ALMOST_EXACT)
    twice = (
        "SELECT COUNT(*) AS n, SUM(a.cost) AS s FROM visits a JOIN visits b ON a.patient = b.patient",
        """SELECT COUNT(*) AS n, SUM(cost) AS s FROM
        (SELECT a.patient, a.cost FROM visits a JOIN visits b ON a.patient = b.patient)""",
    )
    for sql in twice:
        assert [line.kind for line in curator.price(sql, 1.0).lines].count("census") == 2


def test_answers_say_that_bounds_and_domains_were_bought(curator: Curator) -> None:
    curator.tune(ALMOST_EXACT)
    notes = " ".join(curator.ask(QUESTIONS[3], 1.0).notes)
    assert "values of visits.cost are clamped into [0.0, 39.1], which was bought" in notes
    assert "The values of visits.ward were bought" in notes
    assert "bought" not in " ".join(curator.price("SELECT COUNT(cost) AS n FROM visits", 1.0).notes)


def test_the_same_tuning_is_on_record(curator: Curator) -> None:
    first = curator.tune(5.0)
    left = curator.budget()
    again = curator.tune(5.0)
    assert again.recalled and curator.budget() == left
    assert (again.readings, again.proposals, again.catalog) == (
        first.readings,
        first.proposals,
        first.catalog,
    )
    assert curator.ledger.verify().ok


def test_a_price_is_spent_before_the_first_row_and_stays_spent(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = curator.budget()[0].affordable

    def broken(*_: Any) -> Any:
        assert curator.budget()[0].affordable < before
        raise BackendError("The disk is full.")

    monkeypatch.setattr(Snapshot, "run", broken)
    with pytest.raises(BackendError):
        curator.tune(5.0)
    monkeypatch.undo()
    assert curator.budget()[0].affordable < before
    assert not curator.tune(5.0).recalled


def test_the_whole_budget_can_be_spent_and_no_more() -> None:
    with curator_of(budget=(2.0, 1e-6)) as curator:
        with pytest.raises(BudgetExceeded):
            curator.tune(2.001, delta=0.0)
        left = curator.budget()
        curator.tune(2.0, delta=0.0)
        assert curator.budget() != left
        with pytest.raises(BudgetExceeded):
            curator.ask(QUESTIONS[0], 0.01)


def test_the_owner_pays_from_the_datasets_budget_alone() -> None:
    with curator_of(analysts={"ana": {"epsilon": 1.0}, "ben": {"epsilon": 1.0}}) as curator:
        before = curator.budget("ana")
        curator.tune(50.0)
        dataset, ana = curator.budget("ana")
        assert ana == before[1] and dataset.affordable < before[0].affordable
        assert curator.ledger.verify().ok


def test_rows_that_are_units_have_one_row_and_their_range() -> None:
    with curator_of(unit="row") as curator:
        profile = curator.tune(ALMOST_EXACT)
        assert "visits: each row is a unit of its own, so a unit has 1 row." in profile.remarks
        assert [proposal.field for proposal in profile.proposals] == ["domain", "bounds"]


def test_nobody_is_proposed_where_nobody_is_seen() -> None:
    """Twenty patients at epsilon 0.1: a cap out of noise fails this once in e^11 at most."""
    with curator_of(VISITS.slice(0, 20)) as curator:
        profile = curator.tune(0.1, delta=0.0)
        assert profile.proposals == () and profile.catalog == curator.catalog
        assert "cannot be seen" in profile.readings[0].interval


def test_a_later_tuning_keeps_what_was_bought_about_other_columns(curator: Curator) -> None:
    curator.tune(ALMOST_EXACT)
    first = curator.catalog.bought_of("visits")
    curator.tune(ALMOST_EXACT / 2, columns=["ward"])
    second = curator.catalog.bought_of("visits")
    assert second.columns["cost"] == first.columns["cost"]
    assert second.columns["ward"] != first.columns["ward"] and second.contribution != first.contribution
    bounds = second.columns["cost"].bounds
    assert bounds is not None and bounds.declared == (0.0, 10_000.0)


def test_a_grant_uses_what_was_bought(curator: Curator) -> None:
    curator.tune(ALMOST_EXACT)
    with curator.grant(1.0, purpose="visits") as grant:
        assert grant.sums("SELECT COUNT(*) AS n FROM visits").caps == {"COUNT(*)": 4.0}


def test_a_profile_shows_itself_and_goes_into_a_file(curator: Curator) -> None:
    before = dump(curator.catalog)
    profile = curator.tune(ALMOST_EXACT)
    assert "rows per unit" in str(profile) and "rows per unit" in profile._repr_html_()
    assert "on record" in repr(curator.tune(ALMOST_EXACT))
    assert len(profile.to_pandas()) == len(profile.readings)
    state = json.loads(json.dumps(profile.to_json()))
    assert state["proposals"][0]["bought"]["units"][:3] == [100, 0, 100]
    assert parse(profile.written(before)) == profile.catalog == parse(dump(profile.catalog))
    assert parse(profile.written(profile.written(before))) == profile.catalog


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"epsilon": 0}, "epsilon must be a positive number"),
        ({"epsilon": 1e-4}, "fewer than about"),
        ({"epsilon": 1.0, "table": "visit"}, "There is no private table visit, perhaps you mean visits."),
        ({"epsilon": 1.0, "columns": ["costs"]}, "nothing to measure about a column costs"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence_and_costs_nothing(
    curator: Curator, arguments: dict[str, Any], said: str
) -> None:
    left = curator.budget()
    with pytest.raises(InvalidInput, match=said):
        curator.tune(**arguments)
    assert curator.budget() == left


def test_a_table_in_which_nothing_is_open_is_refused() -> None:
    declared = curator_of(bounds={}, contribution={"visits": 4}, budget=(1.0, 0.0))
    with declared as curator, pytest.raises(InvalidInput, match="There is nothing to measure in visits"):
        curator.tune(1.0)


def test_shares_do_not_exceed_the_whole(curator: Curator) -> None:
    for epsilon in (0.3, 1.0, 7.0):
        shares = [measured.epsilon for measured in tuning.planned(curator, epsilon).measurements]
        assert 0.99999 * epsilon < sum(shares) <= epsilon


def test_the_ledger_says_what_a_tuning_measured(curator: Curator) -> None:
    curator.tune(ALMOST_EXACT)
    (paid,) = [entry.content() for entry in curator.ledger.entries() if entry.kind == "reserve"]
    assert paid["words"].startswith("tune visits: visits") and "visits.cost" in paid["words"]
