"""Private copies: made once, private, whole, and gone when what they copy has changed."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from incrowd.backends.copies import Copies
from incrowd.errors import CatalogError

SECRET = "contents.key"


class Scribe:
    """Writes what it is told, and counts."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, place: Path) -> None:
        self.times += 1
        place.write_text(f"copy {self.times}")


def made(tmp_path: Path) -> Path:
    source = tmp_path / "rows.csv"
    source.write_text("a\n1\n")
    return source


def test_a_copy_is_made_once_and_found_by_the_next_process(tmp_path: Path) -> None:
    source, scribe = made(tmp_path), Scribe()
    for _ in range(2):
        copies = Copies(tmp_path / "curator.copies")
        assert copies.copy(str(source), "recipe", scribe).read_text() == "copy 1"
        assert copies.copy(str(source), "recipe", scribe).read_text() == "copy 1"
    assert scribe.times == 1
    assert Copies(tmp_path / "curator.copies").copy(str(source), "other", scribe).read_text() == "copy 2"


def test_a_list_of_files_is_found_by_the_next_process_and_swept_with_its_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "curator.copies"
    for recipe in ("old", "new"):
        Copies(folder).remember("t", recipe, ["b", "a"])
    copies = Copies(folder)
    with copies.user("t"):
        assert copies.remembered("t", "new") == {"a", "b"}
    copies.sweep()
    assert len(list(folder.iterdir())) == 1
    assert copies.remembered("t", "old") == copies.remembered("u", "new") == frozenset()


def test_nobody_else_may_read_a_copy(tmp_path: Path) -> None:
    (tmp_path / "curator.copies").mkdir(mode=0o777)
    place = Copies(tmp_path / "curator.copies").copy(str(made(tmp_path)), "recipe", Scribe())
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in place.parent.iterdir())


def test_a_changed_file_gets_a_new_copy_and_nothing_of_the_old_one_stays(tmp_path: Path) -> None:
    source, scribe = made(tmp_path), Scribe()
    copies = Copies(tmp_path / "curator.copies")
    old = copies.copy(str(source), "recipe", scribe)
    source.write_text("a\n1\n2\n")
    new = copies.copy(str(source), "recipe", scribe)
    assert new.read_text() == "copy 2" and not old.exists()
    assert {file.name for file in new.parent.iterdir()} == {new.name, new.with_suffix(".sum").name, SECRET}


def test_a_damaged_copy_is_made_anew(tmp_path: Path) -> None:
    source, scribe = made(tmp_path), Scribe()
    place = Copies(tmp_path / "curator.copies").copy(str(source), "recipe", scribe)
    place.write_text("copy 0")
    assert Copies(tmp_path / "curator.copies").copy(str(source), "recipe", scribe).read_text() == "copy 2"


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fails(place: Path) -> None:
        place.write_text("half")
        raise ValueError

    copies = Copies(tmp_path / "curator.copies")
    with pytest.raises(ValueError):
        copies.copy(str(made(tmp_path)), "recipe", fails)
    assert {file.name for file in copies.folder.iterdir()} == {SECRET}


def test_without_a_place_of_its_own_copies_are_temporary(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    for wished in (None, tmp_path / "link", tmp_path / "missing" / "curator.copies"):
        copies = Copies(wished)
        place = copies.copy(str(made(tmp_path)), "recipe", Scribe())
        assert tmp_path not in place.parents
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        copies.close()
        assert not place.parent.exists()
    assert not os.listdir(elsewhere)  # noqa: PTH208


def test_what_was_noted_of_a_file_is_forgotten_when_it_changes(tmp_path: Path) -> None:
    source = made(tmp_path)
    copies = Copies(tmp_path / "curator.copies")
    first = copies.state(str(source))
    assert not copies.seen(first, "read")
    copies.note(first, "read")
    assert copies.seen(first, "read") and not copies.seen(first, "other")
    source.touch()
    assert copies.seen(copies.state(str(source)), "read")
    source.write_text("a\n1\n2\n")
    second = copies.state(str(source))
    assert not copies.seen(second, "read")
    source.write_text("a\n1\n3\n")
    copies.note(second, "read")
    assert not copies.seen(second, "read") and not copies.seen(copies.state(str(source)), "read")


def test_what_no_table_needs_any_more_is_removed(tmp_path: Path) -> None:
    source, scribe = made(tmp_path), Scribe()
    folder = tmp_path / "curator.copies"
    first = Copies(folder)
    with first.user("t"):
        old = first.copy(str(source), "old recipe", scribe)
        first.note(first.state(str(source)), "old recipe")
    (folder / "owner.txt").write_text("not ours")
    (folder / "0.new").write_text("another process writes this")
    (folder / "1.new").write_text("and this was given up long ago")
    os.utime(folder / "1.new", (0, 0))
    second = Copies(folder)
    with second.user("t"):
        new = second.copy(str(source), "new recipe", scribe)
    second.sweep()
    assert not old.exists() and new.exists()
    assert {file.name for file in folder.iterdir()} == {
        new.name,
        new.with_suffix(".sum").name,
        "owner.txt",
        "0.new",
        SECRET,
    }
    with second.user("t"):
        pass
    second.sweep()
    assert {file.name for file in folder.iterdir()} == {"owner.txt", "0.new", SECRET}


def test_a_copy_is_private_while_it_is_written(tmp_path: Path) -> None:
    modes = []

    def write(place: Path) -> None:
        place.write_text("rows")
        modes.append(stat.S_IMODE(place.stat().st_mode))

    Copies(tmp_path / "curator.copies").copy(str(made(tmp_path)), "recipe", write)
    assert modes == [0o600]


def test_a_folder_that_is_deleted_is_made_anew_and_what_is_no_file_is_replaced(tmp_path: Path) -> None:
    source, scribe = made(tmp_path), Scribe()
    copies = Copies(tmp_path / "curator.copies")
    place = copies.copy(str(source), "recipe", scribe)
    shutil.rmtree(tmp_path / "curator.copies")
    assert copies.copy(str(source), "recipe", scribe).read_text() == "copy 2"
    place.unlink()
    place.mkdir()
    (place / "inside").write_text("")
    assert copies.copy(str(source), "recipe", scribe).read_text() == "copy 3"


def test_a_time_of_change_that_is_set_back_hides_nothing(tmp_path: Path) -> None:
    source, scribe = made(tmp_path), Scribe()
    copies = Copies(tmp_path / "curator.copies")
    copies.copy(str(source), "recipe", scribe)
    seen = source.stat()
    source.write_text("a\n2\n")
    os.utime(source, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert copies.copy(str(source), "recipe", scribe).read_text() == "copy 2"


def test_a_copy_in_use_is_another_once_the_file_holds_something_else(tmp_path: Path) -> None:
    """Also where two changes fall within one tick of the file system's clock: a copy is named by content."""
    source, scribe = made(tmp_path), Scribe()
    copies = Copies(tmp_path / "curator.copies")
    seen = source.stat()
    for text, copy in (("a\n1\n", 1), ("a\n2\n", 2), ("a\n3\n", 3)):
        source.write_text(text)
        os.utime(source, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert copies.copy(str(source), "recipe", scribe).read_text() == f"copy {copy}"
    os.utime(source)
    assert copies.copy(str(source), "recipe", scribe).read_text() == "copy 3"


def test_a_file_that_changes_while_it_is_copied_is_not_copied(tmp_path: Path) -> None:
    source = made(tmp_path)
    copies = Copies(tmp_path / "curator.copies")

    def write(place: Path) -> None:
        place.write_text("rows of before")
        source.write_text("a\n2\n")

    with copies.user("people"), pytest.raises(CatalogError) as told:
        copies.copy(str(source), "recipe", write)
    assert str(told.value) == "tables.people: its files changed while they were read; try again."
    assert not [file for file in copies.folder.iterdir() if file.suffix in (".copy", ".sum", ".new")]
