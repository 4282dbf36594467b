"""The questions that people ask: each is really answered, or refused with a sentence and a remedy that works.

The files `*.yaml` beside this one are lists of cases; one file per subject, in any order. A case:

    - ask: SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward      # as people type it
      source: our tutorial                     # where the question, or its construct, comes from
      state: answered

    - ask: SELECT * FROM visits
      source: what everybody tries first
      refused: would show the rows of people   # a part of the sentence
      remedy: SELECT COUNT(*) AS n FROM visits # asked, too: it must be answered

Optional:

    tables     the schema, a file in `schemas/`: tables with bounds, domains and units, and rows made by
               DuckDB's SQL; `hospital`, the one of the README, if left out
    dialect    the dialect that the question is written in
    options    what else `Curator.ask` is called with: {within: 5}; epsilon is 20 and delta 1e-5 otherwise
    columns    the names of the answer's columns
    rows       how many rows the answer has; at least one if left out
    pending    the part that is still to be built: until then the case may also be refused (where it is to be
               answered, or with another sentence), but cleanly; `python -m tests.query.corpus` lists them
    page       the section of docs/sql.md that shows the case; then `why` is the reason that stands there

Unknown keys and questions that occur twice are refused. Every question is asked of one curator per schema at
an epsilon that hides nothing, so that no outcome depends on noise: failure by chance is below 1e-6 for each.
"""

from __future__ import annotations

import pytest

from incrowd.errors import InvalidInput, QueryError
from tests.query.corpus.asking import ask, table_of
from tests.query.corpus.cases import HERE, SCHEMAS, Case, CaseError, case_of, cases


def check_answered(case: Case, sql: str) -> None:
    table = table_of(ask(case, sql))
    assert table.num_columns > 0 and all(table.column_names)
    if sql != case.ask:
        return
    if case.columns:
        assert tuple(table.column_names) == case.columns
    if case.rows is None:
        assert table.num_rows > 0
    else:
        assert table.num_rows == case.rows


def check_refused(case: Case) -> None:
    # A dialect that is not spoken yet is refused as an option, before the SQL is read.
    with pytest.raises(InvalidInput if case.pending else QueryError) as refusal:
        ask(case, case.ask)
    said = str(refusal.value)
    assert said.endswith((".", "?")) and "\n" not in said and "__" not in said
    if not case.pending:
        assert case.refused in said


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_it_is_answered_or_refused_as_stated(case: Case) -> None:
    if case.pending:
        try:
            check_answered(case, case.ask)
        except InvalidInput:
            check_refused(case)
    elif case.state:
        check_answered(case, case.ask)
    else:
        check_refused(case)
    if case.remedy:
        check_answered(case, case.remedy)


def test_every_schema_is_asked_about() -> None:
    assert {case.tables for case in cases()} == set(SCHEMAS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"asks": "x"}, "unknown keys asks"),
        ({"state": "refused"}, "only state"),
        ({"refused": "no"}, "either"),
        ({"tables": "moon"}, "one of"),
        ({"pending": "someday"}, "one of"),
        ({"ask": 3}, "must be text"),
        ({"source": None}, "must be text"),
    ],
)
def test_a_case_that_does_not_keep_to_the_format_is_refused(change: dict, said: str) -> None:
    with pytest.raises(CaseError, match=said):
        case_of("x", {"ask": "SELECT 1", "source": "nobody", "state": "answered", **change})


def test_a_refusal_without_a_remedy_is_refused() -> None:
    with pytest.raises(CaseError, match="remedy"):
        case_of("x", {"ask": "SELECT 1", "source": "nobody", "refused": "no"})


def test_a_question_that_occurs_twice_is_refused(tmp_path, monkeypatch) -> None:
    twice = (
        "- {ask: SELECT 1, source: a, state: answered}\n- {ask: 'select  1', source: b, state: answered}\n"
    )
    (tmp_path / "x.yaml").write_text(twice, encoding="utf-8")
    assert HERE.name == "corpus"
    monkeypatch.setattr("tests.query.corpus.cases.HERE", tmp_path)
    with pytest.raises(CaseError, match="asked before"):
        cases()
