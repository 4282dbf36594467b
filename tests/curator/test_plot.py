"""Charts of answers: the rows they draw are the answer's, with their intervals."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import pyarrow as pa
import pytest

from incrowd import InvalidInput
from incrowd.curator.plot import chart

ONE = pa.table({"town": ["Ulm", None], "n": [5, 2], "n_low": [3, 0], "n_high": [7, 4]})
TWO = ONE.append_column("a", pa.array([1.5, 2.5])).append_column("a_low", pa.array([1.0, 2.0]))
TWO = TWO.append_column("a_high", pa.array([2.0, 3.0]))


def drawn(table: pa.Table) -> dict[str, Any]:
    pytest.importorskip("altair")
    content: dict[str, Any] = chart(table).to_dict()
    return content


def values(table: pa.Table) -> list[dict[str, Any]]:
    content = drawn(table)
    data = content.get("data") or content["layer"][0]["data"]
    rows: list[dict[str, Any]] = content["datasets"][data["name"]]
    return rows


def test_a_number_is_drawn_by_group_between_its_ends() -> None:
    assert values(ONE) == [
        {"group": "Ulm", "number": "n", "value": 5, "low": 3, "high": 7},
        {"group": "NULL", "number": "n", "value": 2, "low": 0, "high": 4},
    ]
    content = drawn(ONE)
    bars, points = content["layer"]
    assert content["title"] == "n"
    assert (bars["encoding"]["y"]["field"], bars["encoding"]["y2"]["field"]) == ("low", "high")
    assert points["encoding"]["y"]["field"] == "value"
    for layer in (bars, points):
        assert layer["encoding"]["x"]["sort"] == ["Ulm", "NULL"]
        assert layer["encoding"]["x"]["title"] == "town"


def test_each_number_has_a_facet_and_a_scale_of_its_own() -> None:
    content = drawn(TWO)
    assert [(row["group"], row["number"], row["value"]) for row in values(TWO)] == [
        ("Ulm", "n", 5),
        ("Ulm", "a", 1.5),
        ("NULL", "n", 2),
        ("NULL", "a", 2.5),
    ]
    assert content["facet"]["column"]["field"] == "number"
    assert content["resolve"] == {"scale": {"y": "independent"}}


def test_several_keys_are_one_label_and_no_key_is_all() -> None:
    keyed = TWO.select(["town", "n", "n_low", "n_high"]).append_column("sex", pa.array(["f", "m"]))
    assert [row["group"] for row in values(keyed)] == ["Ulm, f", "NULL, m"]
    assert [row["group"] for row in values(ONE.drop_columns(["town"]).slice(0, 1))] == ["all"]


def test_an_answer_without_intervals_has_nothing_to_plot() -> None:
    pytest.importorskip("altair")
    with pytest.raises(InvalidInput) as refused:
        chart(pa.table({"town": ["Ulm"], "n": [5]}))
    assert str(refused.value) == "There is nothing to plot: no column of the answer has an interval."


def test_a_missing_altair_is_told_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(InvalidInput) as refused:
        chart(ONE)
    assert str(refused.value) == "plot() needs the package altair: pip install 'incrowd[plot]'."


def test_dates_have_an_axis_of_their_own_and_give_way_to_numbers() -> None:
    days = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
    dated = pa.table({"g": [1, 2], "d": days, "d_low": days, "d_high": days})
    assert [row["value"] for row in values(dated)] == ["2020-01-01", "2021-01-01"]
    assert drawn(dated)["layer"][0]["encoding"]["y"]["type"] == "temporal"
    both = dated.append_column("n", [[5, 2]]).append_column("n_low", [[3, 0]])
    assert {row["number"] for row in values(both.append_column("n_high", [[7, 4]]))} == {"n"}
