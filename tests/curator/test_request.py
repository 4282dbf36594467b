"""A request keeps what was asked, and its keywords are those of `ask` and `price`."""

from __future__ import annotations

import dataclasses
import inspect
from typing import get_type_hints

import numpy as np
import pytest

from incrowd import Curator, InvalidInput
from incrowd.curator.request import Options, Request, request_of

FIELDS = {field.name: field for field in dataclasses.fields(Request)}


def test_options_are_the_keywords_of_a_request_besides_sql_and_epsilon() -> None:
    keywords = {name for name, field in FIELDS.items() if field.kw_only}
    assert keywords == set(FIELDS) - {"sql", "epsilon"}
    assert set(Options.__annotations__) == keywords
    hints = get_type_hints(Request)
    assert get_type_hints(Options) == {name: hints[name] for name in keywords}


@pytest.mark.parametrize("method", [Curator.ask, Curator.price])
def test_ask_and_price_take_sql_and_epsilon_by_place(method: object) -> None:
    parameters = list(inspect.signature(method).parameters.values())  # type: ignore[arg-type]
    placed = [parameter.name for parameter in parameters if parameter.kind == parameter.POSITIONAL_OR_KEYWORD]
    assert placed == ["self", "sql", "epsilon"]
    assert parameters[-1].kind == inspect.Parameter.VAR_KEYWORD


def test_nothing_is_decided_but_that_shrinking_is_undone() -> None:
    request = Request("SELECT 1")
    assert request.rescale is True
    others = set(FIELDS) - {"sql", "rescale"}
    assert {name: getattr(request, name) for name in others} == dict.fromkeys(others)


def test_options_are_named() -> None:
    with pytest.raises(TypeError):
        Request("SELECT 1", 0.5, 1e-6)  # type: ignore[misc]


def test_a_truth_value_is_no_number() -> None:
    for name in ("epsilon", "within", "delta", "confidence"):
        for truth in (True, np.False_, np.array(True)):
            with pytest.raises(InvalidInput, match=f"^{name} must .*, not a truth value"):
                Request("SELECT 1", **{name: truth})


def test_an_option_that_is_none_is_told_with_what_is_meant() -> None:
    with pytest.raises(InvalidInput) as told:
        request_of("ask", "SELECT 1", None, {"epsilno": 1})
    assert str(told.value) == "ask has no option epsilno; perhaps you mean epsilon."
    assert request_of("ask", "SELECT 1", 0.5, {"within": 3}) == Request("SELECT 1", 0.5, within=3)


def test_a_dialect_is_one_of_those_that_are_known() -> None:
    assert Request("SELECT 1", dialect="bigquery").dialect == "bigquery"
    for dialect in ("mysql", "BigQuery ", 3, ["spark"]):
        with pytest.raises(InvalidInput, match="dialect names a dialect of SQL, not"):
            Request("SELECT 1", dialect=dialect)  # type: ignore[arg-type]
