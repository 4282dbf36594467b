"""Files that are replaced while a question is at work: one sentence, and no answer for other rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import BackendError, Curator
from incrowd.catalog import load
from incrowd.curator.ledger import Ledger

POLICY = """
sources: {main: {parquet: people.parquet}}
tables:
  people: {unit: id, columns: {id: {type: integer}, age: {type: integer, bounds: [0, 100]}}}
budget: {epsilon: 10, delta: 1e-6}
"""
COUNT = "SELECT COUNT(*) AS n FROM people"


def write(folder: Path, rows: int) -> None:
    """Put another file in the place of the first, all at once."""
    draft = folder / "draft"
    pq.write_table(pa.table({"id": [row % 50 for row in range(rows)], "age": [30] * rows}), draft)
    draft.replace(folder / "people.parquet")


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    write(tmp_path, 100)
    file = tmp_path / "curator.yaml"
    file.write_text(POLICY)
    catalog = load(file)
    Ledger.found(catalog.ledger_url, catalog).close()
    return Curator.open(file)


@pytest.mark.parametrize("checked", [False, True], ids=["", "and another question has checked the new one"])
def test_a_file_that_is_replaced_between_census_and_release_ends_the_question(
    curator: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    execute = Curator.execute

    def replaced(*words: Any) -> Any:
        write(tmp_path, 300)
        if checked:
            curator.backend.refresh(["people"])
        return execute(*words)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "execute", replaced)
        with pytest.raises(BackendError, match="changed while the question ran; ask again") as told:
            curator.ask(COUNT, epsilon=1.0)
    assert str(told.value).count(".") == 1 and told.value.__context__ is None
    assert curator.budget()[0].left.epsilon == 9
    answer = curator.ask(COUNT, epsilon=1.0)
    assert not answer.recalled and curator.budget()[0].left.epsilon == 8
    assert curator.ask(COUNT, epsilon=1.0).recalled
    curator.close()


def test_rows_that_come_back_have_no_answer_on_record_that_is_about_others(
    curator: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are known by their content, so old rows have their old version again."""
    execute, first = Curator.execute, (tmp_path / "people.parquet").read_bytes()

    def replaced(*words: Any) -> Any:
        write(tmp_path, 300)
        curator.backend.refresh(["people"])
        return execute(*words)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "execute", replaced)
        with pytest.raises(BackendError):
            curator.ask(COUNT, epsilon=1.0)
    (tmp_path / "people.parquet").write_bytes(first)
    os.utime(tmp_path / "people.parquet")
    assert not curator.ask(COUNT, epsilon=1.0).recalled
    curator.close()
