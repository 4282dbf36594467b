"""What a person sees in a prompt or a notebook."""

from __future__ import annotations

from pathlib import Path

import polars
import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.curator.views import MOST_LINES, csv_of, html_of, text_of


@pytest.fixture
def curator() -> Curator:
    towns = ["Ulm", "Köln"] * 20
    table = pa.table({"id": range(40), "town": towns, "x": [1.5] * 40})
    settings = {"bounds": {"x": (0, 2)}, "domains": {"town": ["Ulm", "Köln"]}, "budget": (1000.0, 1e-6)}
    return Curator.from_tables(t=table, unit="id", **settings)  # type: ignore[arg-type]


SQL = "SELECT town, COUNT(*) AS n FROM t GROUP BY town"


def test_an_answer_shows_its_rows_and_its_cost(curator: Curator) -> None:
    answer = curator.ask(SQL, epsilon=400.0, contribution=1)
    assert [line.split() for line in repr(answer).splitlines()[:4]] == [
        ["town", "n", "n_low", "n_high"],
        ["Köln", "20", "20", "20"],
        ["Ulm", "20", "20", "20"],
        ["NULL", "0", "0", "0"],
    ]
    assert "epsilon 400" in repr(answer).splitlines()[-1]
    again = curator.ask(SQL, epsilon=400.0, contribution=1)
    assert repr(again).splitlines()[-1] == "(on record, free)"
    assert "<td>Köln</td>" in answer._repr_html_() and "epsilon 400" in answer._repr_html_()


def test_an_answer_is_read_in_every_way(curator: Curator, tmp_path: Path) -> None:
    answer = curator.ask(SQL, epsilon=400.0, contribution=1)
    rows = [{"town": "Köln", "n": 20}, {"town": "Ulm", "n": 20}, {"town": None, "n": 0}]
    assert list(answer) == rows and len(answer) == 3
    assert polars.DataFrame(answer).to_dicts() == rows
    assert pa.table(answer).to_pylist() == rows
    assert answer.to_csv() == "town,n\r\nKöln,20\r\nUlm,20\r\n,0\r\n"
    assert answer.to_csv(tmp_path / "answer.csv", intervals=0.9) is None
    assert (
        (tmp_path / "answer.csv").read_bytes().decode().startswith("town,n,n_low,n_high\r\nKöln,20,20,20\r\n")
    )


def test_prices_balances_and_curators_are_said_in_words(curator: Curator) -> None:
    price = curator.price(SQL, epsilon=0.5, contribution=1)
    assert repr(price) == "<Price epsilon 0.5; 95% of answers within n ± 5.991>"
    assert "n ± 5.991" in price._repr_html_()
    (balance,) = curator.budget()
    assert repr(balance).startswith("<Balance The dataset's budget: epsilon 1000 or ")
    assert repr(balance).endswith(" left of epsilon 1000, delta 1e-06>")
    assert repr(curator) == "<Curator of t (unit: id); budget: epsilon 1000>"


def test_long_tables_are_cut_and_say_so() -> None:
    table = pa.table({"n": range(100)})
    assert text_of(table).splitlines()[-1] == f"... {100 - MOST_LINES} more rows"
    assert "50 more rows" in html_of(table, ["one & two"]) and "one &amp; two" in html_of(
        table, ["one & two"]
    )


def test_csv_quotes_what_it_must() -> None:
    table = pa.table({"a,b": ['say "x"', "two\nlines"]})
    assert csv_of(table) == '"a,b"\r\n"say ""x"""\r\n"two\nlines"\r\n'


def test_columns_of_one_name_and_moments_beyond_python_are_shown() -> None:
    far = pa.array([2**60], pa.timestamp("us"))
    table = pa.table([pa.array([1]), pa.array([2]), far], ["n", "n", "t"])
    assert text_of(table).splitlines()[1].split()[:2] == ["1", "2"]
    assert csv_of(table).startswith("n,n,t\r\n1,2,")


def test_numbers_stand_to_the_right_and_texts_to_the_left() -> None:
    table = pa.table({"town": ["Ulm", "Neu-Ulm"], "n": [5, 12]})
    assert text_of(table).splitlines()[1:] == ["Ulm       5", "Neu-Ulm  12"]


@pytest.mark.parametrize(("rows", "said"), [(50, ""), (51, "<p>1 more rows</p>"), (1_050, "1,000 more rows")])
def test_html_says_how_many_rows_it_leaves_out(rows: int, said: str) -> None:
    shown = html_of(pa.table({"n": list(range(rows))}), [])
    assert (said in shown) and ("more rows" in shown) == bool(said)
    assert shown.count("<tr>") == min(rows, 50) + 1
