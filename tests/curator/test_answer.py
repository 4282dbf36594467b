"""An answer: one table in many forms, with intervals at any confidence, and notes where something was cut."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd import Curator, InvalidInput
from incrowd.curator.answer import Answer
from incrowd.curator.released import Noisy

PEOPLE = pa.table({"id": list(range(60)), "sex": ["f", "m", "m"] * 20, "pay": [4.0] * 60})
SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with Curator.from_tables(
        people=PEOPLE,
        unit="id",
        bounds={"pay": (0, 10)},
        domains={"sex": ["f", "m"]},
        not_null=["sex"],
        budget=(1e6, 1e-6),
    ) as made:
        yield made


@pytest.fixture(scope="module")
def answer(curator: Curator, noisy: Answer) -> Answer:
    """Asked after the noisy one, which would be recalled from it."""
    return curator.ask(SQL, epsilon=1_000.0, contribution=1)


@pytest.fixture(scope="module")
def noisy(curator: Curator) -> Answer:
    return curator.ask(SQL, epsilon=0.5, contribution=1)


EXACT = [{"sex": "f", "n": 20}, {"sex": "m", "n": 40}]


def test_every_form_holds_the_same_table(answer: Answer, tmp_path: Path) -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    assert answer.to_arrow().to_pylist() == EXACT
    assert list(answer) == EXACT and len(answer) == 2
    assert isinstance(answer.to_pandas(), pandas.DataFrame)
    assert answer.to_pandas().to_dict("records") == EXACT
    assert answer.to_polars().to_dicts() == polars.DataFrame(answer).to_dicts() == EXACT
    assert pa.table(answer).to_pylist() == EXACT
    assert answer.to_csv() == "sex,n\r\nf,20\r\nm,40\r\n"
    file = tmp_path / "answer.csv"
    assert answer.to_csv(file) is None and file.read_bytes() == b"sex,n\r\nf,20\r\nm,40\r\n"


@pytest.mark.parametrize("off", [None, False])
def test_without_intervals_there_are_no_ends(answer: Answer, off: bool | None) -> None:
    assert answer.to_arrow(off).column_names == ["sex", "n"]


def length(table: pa.Table) -> float:
    low, high = (table.column(f"n_{end}")[1].as_py() for end in ("low", "high"))
    return float(high - low)


def test_intervals_widen_with_confidence_and_true_means_that_of_the_question(noisy: Answer) -> None:
    assert noisy.confidence == 0.95
    assert noisy.to_arrow(True) == noisy.to_arrow(0.95) == noisy.intervals()
    assert noisy.intervals(0.5) == noisy.to_arrow(0.5)
    assert noisy.to_arrow(True).column_names == ["sex", "n", "n_low", "n_high"]
    assert 0 < length(noisy.intervals(0.5)) < length(noisy.intervals()) < length(noisy.intervals(0.999))
    line = noisy.price.halfwidths["n"]
    assert line is not None
    assert (
        2 * line - 2 <= length(noisy.intervals()) <= 2 * line
        or noisy.intervals().column("n_low")[1].as_py() == 0
    )


@pytest.mark.parametrize("level", [0.0, 1.0, 1, 95, -0.5, float("nan")])
def test_a_confidence_that_is_none_is_refused(answer: Answer, level: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        answer.to_arrow(level)
    assert str(refused.value) == (
        f"intervals must be a confidence between 0 and 1, such as 0.95, not {level!r}."
    )


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_told_with_how_to_install_it(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput) as refused:
        getattr(answer, f"to_{package}")()
    assert str(refused.value) == (
        f"to_{package} needs the package {package}: pip install 'incrowd[{package}]'."
    )


def test_its_cost_is_that_of_its_price(noisy: Answer) -> None:
    assert noisy.cost.epsilon() == 0.5
    assert noisy.remaining[0].spent.epsilon is not None
    assert repr(noisy).endswith(f"({noisy.price})")


def test_an_answer_on_record_is_the_same_and_says_that_it_was_free(curator: Curator, noisy: Answer) -> None:
    before = curator.budget()
    again = curator.ask(SQL, epsilon=0.5, contribution=1)
    assert again.recalled and not noisy.recalled
    assert again.to_arrow(True) == noisy.to_arrow(True)
    assert repr(again).endswith("(on record, free)") and "on record, free" in again._repr_html_()
    assert curator.budget() == before


def scaled(curator: Curator, small: int, large: int) -> Answer:
    """An answer whose totals under both caps were these."""
    answer = curator.ask(SQL, epsilon=3.0)
    (released,) = answer.released
    exact = Noisy("laplace", Fraction(1, 10**9))
    factors: dict[str, Any] = {"m0": (small, large, exact, exact)}
    return replace(answer, released=(replace(released, factors=factors),), _cache={})


@pytest.mark.parametrize(
    ("large", "factor", "notes"), [(80, 1.0, 0), (102, 1.02, 0), (150, 1.5, 1), (200, 2.0, 1), (201, 2.01, 2)]
)
def test_what_was_cut_is_noted_with_its_factor(
    curator: Curator, large: int, factor: float, notes: int
) -> None:
    answer = scaled(curator, 100, large)
    assert dict(answer.factors) == {"COUNT(*)": pytest.approx(factor)}
    about, *said = [note for note in answer.notes if note.startswith("COUNT(*): ")]
    assert "each unit counts for at most" in about
    assert len(said) == notes
    assert all(
        part in " ".join(said) for part in [f"scaled back up by {factor:.2f}", "more of the total"][:notes]
    )


def test_an_answer_that_was_not_rescaled_has_no_factor(answer: Answer) -> None:
    assert dict(answer.factors) == {} and answer.notes == ()


def test_a_declared_contribution_is_the_cap_and_nothing_is_known_beyond_it(answer: Answer) -> None:
    assert answer.caps == {"COUNT(*)": 1.0} == answer.price.caps
    assert answer.beyond == {}
    assert "counts for" not in str(answer)


ALL = "SELECT COUNT(*) AS n, SUM(pay) AS s, AVG(pay) AS a FROM people"


def test_a_sum_s_cap_is_in_values_and_an_average_s_in_rows(curator: Curator) -> None:
    answer = curator.ask(ALL, epsilon=1.0, contribution=3)
    assert answer.caps == {"COUNT(*)": 3.0, "SUM(pay)": 30.0, "AVG(pay)": 3.0}


def test_where_each_row_is_a_unit_nothing_is_cut() -> None:
    with Curator.from_tables(people=PEOPLE, unit="row", bounds={"pay": (0, 10)}, budget=(9, 1e-6)) as made:
        answer = made.ask(ALL, epsilon=1.0)
    assert answer.caps == {"COUNT(*)": None, "SUM(pay)": None, "AVG(pay)": None} == answer.price.caps
    assert answer.beyond == {} and answer.notes == () and "counts for" not in str(answer)


def test_caps_that_were_chosen_privately_are_said_with_who_exceeds_them() -> None:
    """20 units have one row and 40 have two, of 4 each."""
    people = pa.concat_tables([PEOPLE, PEOPLE.slice(0, 40)])
    bounds = {"pay": (0, 10)}
    with Curator.from_tables(people=people, unit="id", bounds=bounds, budget=(1e6, 1e-6)) as made:
        answer = made.ask(ALL, epsilon=1e4)
        assert answer.price.caps == {}
        assert set(answer.caps) == {"COUNT(*)", "SUM(pay)", "AVG(pay)"}
        assert answer.caps["COUNT(*)"] == 2.0
        assert answer.caps["SUM(pay)"] == 8.0
        assert answer.beyond["COUNT(*)"] == answer.beyond["SUM(pay)"] == 0
        sentence = (
            "COUNT(*): each unit counts for at most 2; at 95% confidence, no unit would count for more."
        )
        assert sentence in answer.notes and sentence in str(answer).splitlines()
        assert sentence in answer._repr_html_()
        again = made.ask(ALL, epsilon=1e4)
        assert again.recalled and (again.caps, again.beyond) == (answer.caps, answer.beyond)


def test_who_exceeds_a_cap_is_said_at_the_confidence_of_the_question(curator: Curator) -> None:
    answer = curator.ask(SQL, epsilon=0.1, confidence=0.999)
    (released,) = answer.released
    stated = {"m0": replace(released.stated["m0"], cap=12.0, beyond=5)}
    answer = replace(answer, released=(replace(released, stated=stated, factors={}),), _cache={})
    (note,) = (note for note in answer.notes if note.startswith("COUNT(*): "))
    assert note.endswith("at most 12; at 99.9% confidence, at most 5 units would count for more.")


def test_a_chart_is_drawn_at_a_confidence(answer: Answer) -> None:
    pytest.importorskip("altair")
    assert answer.plot().to_dict() == answer.plot(0.95).to_dict()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing/a.csv", "missing/a.csv cannot be written: no such file or directory; name another file."),
        (".", ". cannot be written: is a directory; name another file."),
        ("\ud800", "path cannot be written to: the path holds half a character (a lone surrogate)."),
        ("a\0", "path cannot be written to: the path holds the character NUL."),
        ("x" * 5000, "path cannot be written to: the path is longer than one may be."),
        (3.5, "path must be the path of a file, or left out for CSV as text."),
        (b"a.csv", "path must be the path of a file, or left out for CSV as text."),
        ("", "path must be the path of a file, or left out for CSV as text."),
    ],
)
def test_csv_goes_to_a_file_that_can_be_written(
    answer: Answer, path: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as told:
        answer.to_csv(path)
    assert str(told.value) == said


def test_an_odd_confidence_of_a_chart_is_refused(answer: Answer) -> None:
    pytest.importorskip("altair")
    for odd in (np.array([1, 2]), 0, "x", float("nan"), object()):
        with pytest.raises(InvalidInput, match="must be a confidence between 0 and 1"):
            answer.plot(odd)
