"""An id is written into an owner's file of any shape, and changes nothing else in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incrowd.catalog import load, parse
from incrowd.catalog.identity import account_lines, new_id, tied
from incrowd.errors import CatalogError

PLAIN = """\
# mine
sources: {s: {csv: a.csv}}
tables: {t: {unit: row, columns: {id: {type: integer}}}}  # all
budget: {epsilon: 1}
"""
JSON = json.dumps(
    {
        "sources": {"s": {"csv": "a.csv"}},
        "tables": {"t": {"unit": "row", "columns": {"id": {"type": "integer"}}}},
        "budget": {"epsilon": 1},
    },
    indent=2,
)


def write(folder: Path, text: str) -> Path:
    file = folder / "curator.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("text", [PLAIN, JSON, PLAIN + "ledger: b.ledger\n", PLAIN.rstrip()])
def test_a_new_id_comes_with_a_ledger_and_changes_nothing_else(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    before = load(file)
    after = parse(tied(text, before, file), name="curator.yaml").located(file)
    assert after.id is not None and len(after.id) == 32
    assert after.ledger == (before.ledger or "curator.ledger") and after.ledger_url == (
        str(tmp_path / "b.ledger") if before.ledger else before.ledger_url
    )
    assert after.model_copy(update={"id": None, "ledger": before.ledger}) == before


@pytest.mark.parametrize("line", ["id: one", "id: 'one'  # keep", '"id": "one"', 'id : "one"'])
def test_a_new_id_takes_the_place_of_the_old_one(tmp_path: Path, line: str) -> None:
    text = f"{PLAIN}ledger: b.ledger\n{line}\n"
    file = write(tmp_path, text)
    before = load(file)
    if line.startswith("id :"):
        text = text.replace("id :", "id:")
    after = parse(tied(text, before, file), name="curator.yaml").located(file)
    assert before.id == "one" and after.id not in (None, "one")
    assert after.model_copy(update={"id": "one"}) == before


def test_a_file_that_takes_no_line_is_told(tmp_path: Path) -> None:
    file = write(tmp_path, PLAIN + "...\n")
    with pytest.raises(CatalogError, match=r"cannot take a line with the id .*; write its fields one"):
        tied(file.read_text(), load(file), file)


def test_the_lines_say_what_they_are_for() -> None:
    lines = account_lines("a.ledger", "one")
    assert "\nledger: a.ledger\n" in lines and "\nid: one\n" in lines and lines.count("# ") == 2
    assert account_lines(None, None) == ""
    assert new_id() != new_id()
