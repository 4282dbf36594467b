"""A ledger and its owner's file know each other, however the ledger was founded."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.catalog import load
from incrowd.curator.ledger import Ledger
from incrowd.curator.ledger.tying import found_for
from incrowd.errors import CatalogError, IncrowdError, LedgerError

POLICY = """\
sources: {s: {csv: a.csv}}
tables: {t: {unit: row, columns: {a: {type: integer}}}}
budget: {epsilon: 1}
"""
PEOPLE = pa.table({"age": [31, 44]})
COUNT = "SELECT COUNT(*) AS n FROM t"


def policy(folder: Path, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_text("a\n1\n2\n")
    (folder / "curator.yaml").write_text(POLICY + more)
    return folder / "curator.yaml"


def spent(file: Path) -> float:
    with Curator.open(file) as curator:
        return 1.0 - float(curator.budget()[0].left.epsilon)


def test_a_ledger_founded_from_code_is_tied_to_the_file(tmp_path: Path) -> None:
    ours, theirs = policy(tmp_path / "ours"), policy(tmp_path / "theirs")
    for file in (ours, theirs):
        with Curator.open(file, new_ledger=True) as curator:
            assert curator.catalog == load(file) and curator.ledger.verify().ok
    declared = load(ours)
    assert declared.id is not None and declared.ledger == "curator.ledger"
    assert ours.read_text().startswith(POLICY)
    with closing(Ledger.open(declared.ledger_url, declared)) as ledger:
        assert next(ledger.entries()).content()["policy"] == declared.id
    elsewhere = policy(tmp_path / "elsewhere", f"ledger: {declared.ledger_url}\n")
    with pytest.raises(LedgerError, match=f"belongs to an owner's file with id {declared.id}"):
        Curator.open(elsewhere)
    shutil.copy(theirs.parent / "curator.ledger", ours.parent / "curator.ledger")
    with pytest.raises(LedgerError, match=f"belongs to an owner's file with id {load(theirs).id}"):
        Curator.open(ours)


def from_code(file: Path) -> None:
    Curator.open(file, new_ledger=True).close()


def from_outside(file: Path) -> None:
    found_for(file)[1].close()


@pytest.mark.parametrize("found", [from_code, from_outside])
def test_a_file_whose_ledger_is_gone_gets_no_other_one_unasked(
    tmp_path: Path, found: Callable[[Path], None]
) -> None:
    file = policy(tmp_path)
    found(file)
    with Curator.open(file) as curator:
        curator.ask(COUNT, epsilon=0.5)
    first = load(file)
    with pytest.raises(LedgerError, match="already, and a ledger is founded in a free place"):
        found(file)
    (tmp_path / "curator.ledger").rename(tmp_path / "lost")
    with pytest.raises(LedgerError, match=r"has an id, .* restore, or give up that account.* --give-up"):
        found(file)
    assert load(file) == first and not (tmp_path / "curator.ledger").exists()
    declared, ledger = found_for(file, give_up=True)
    with closing(ledger):
        assert next(ledger.entries()).content()["gave_up"] == first.id and ledger.verify().ok
    assert declared == load(file) and declared.id != first.id
    assert declared.model_copy(update={"id": first.id}) == first
    assert spent(file) == 0.0
    shutil.copy(tmp_path / "lost", tmp_path / "curator.ledger")
    with pytest.raises(LedgerError, match=f"belongs to an owner's file with id {first.id}"):
        Curator.open(file)


def test_an_account_is_not_given_up_while_an_anchor_keeps_its_head(tmp_path: Path) -> None:
    file = policy(tmp_path, "anchor: kept.anchor\n")
    from_code(file)
    (tmp_path / "curator.ledger").unlink()
    before = file.read_text()
    with pytest.raises(LedgerError, match=r"kept\.anchor keeps the head of a ledger already"):
        found_for(file, give_up=True)
    assert file.read_text() == before


def test_the_row_of_an_anchor_on_a_server_is_found_under_the_id_before(
    tmp_path: Path, postgres_database: str
) -> None:
    file = policy(tmp_path, f"anchor: {postgres_database}\n")
    from_code(file)
    (tmp_path / "curator.ledger").unlink()
    with pytest.raises(LedgerError, match="keeps the head of a ledger already"):
        found_for(file, give_up=True)


def test_a_founding_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = policy(tmp_path, "ledger: none/a.ledger\n")
    before = file.read_text()
    with pytest.raises(LedgerError, match="does not exist; make it first"):
        found_for(file)
    assert file.read_text() == before
    file = policy(tmp_path, "...\n")
    with pytest.raises(CatalogError, match="cannot take a line with the id"):
        found_for(file)
    assert [path.name for path in tmp_path.glob("*ledger*")] == []


def test_a_file_that_cannot_be_written_gets_no_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = policy(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(CatalogError, match=r"cannot be written, .*; let this user write it"):
        found_for(file)
    assert not (tmp_path / "curator.ledger").exists()


def test_of_many_foundings_at_once_one_is_tied(tmp_path: Path) -> None:
    file, said = policy(tmp_path), list[str]()

    def found() -> None:
        try:
            from_outside(file)
            said.append("")
        except IncrowdError as error:
            said.append(str(error))

    threads = [threading.Thread(target=found) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bool(words) for words in said) == [False, True, True, True, True, True]
    assert spent(file) == 0.0


def test_a_ledger_of_tables_in_memory_is_theirs_while_they_share_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with Curator.from_tables(people=PEOPLE, ledger=path, new_ledger=True) as curator:
        curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    with Curator.from_tables(people=PEOPLE, visits=PEOPLE, ledger=path) as curator:
        assert curator.budget()[0].left.epsilon == 0.5 and curator.ledger.verify().ok
    for tables, public in (({"shops": PEOPLE}, []), ({"people": PEOPLE, "shops": PEOPLE}, ["people"])):
        with pytest.raises(LedgerError, match=r"tables in memory \(people\), not to these tables"):
            Curator.from_tables(tables=tables, public=public, ledger=path)
    with pytest.raises(LedgerError, match=r"tables in memory \(people\), not to this one"):
        Curator.open(policy(tmp_path, f"ledger: {path}\n"))
