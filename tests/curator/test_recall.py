"""The same question, in the user's sense, gets the answer on record for nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import Curator
from incrowd.curator.curator import BETTER, FREE
from tests.curator.test_ordinary_life import COUNT, policy

ASKED = "SELECT COUNT(*) AS n FROM people WHERE age > 30 AND age <> 40"


@pytest.mark.parametrize(
    "spelling",
    [
        "SELECT COUNT(*) AS people FROM people WHERE age > 30 AND age <> 40",
        "select count(*) as n from people as p where (40 <> p.age) and p.age > 30",
        "SELECT COUNT(*) AS n FROM people WHERE age <> 40 AND age > 30 LIMIT 1",
    ],
)
def test_another_spelling_is_free_and_has_the_same_number(tmp_path: Path, spelling: str) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        first = curator.ask(ASKED, epsilon=1.0).to_arrow()
        assert FREE in curator.price(spelling, epsilon=1.0).notes
        second = curator.ask(spelling, epsilon=1.0)
        assert second.recalled and second.to_arrow().column(0).to_pylist() == first.column(0).to_pylist()
        assert curator.budget()[0].left.epsilon == 9


@pytest.mark.parametrize("number", ["COUNT(age)", "SUM(age)", "AVG(age)", "STDDEV(age)", "MEDIAN(age)"])
@pytest.mark.parametrize("groups", ["", " GROUP BY town"])
def test_caps_that_were_chosen_privately_are_found_again_under_another_name_of_the_table(
    number: str, groups: str
) -> None:
    people = pa.table({"unit": [1, 1, 2, 3], "age": [30, 40, 50, 60], "town": ["a", "b", "a", "a"]})
    with Curator.from_tables(
        p=people, unit="unit", bounds={"age": (0, 100)}, domains={"town": ["a", "b"]}, budget=(10.0, 1e-6)
    ) as curator:
        asked = curator.ask(f"SELECT {number} AS n FROM p{groups}", epsilon=1.0)
        again = curator.ask(f"SELECT {number.replace('age', 'q.age')} AS n FROM p AS q{groups}", epsilon=1.0)
        assert again.recalled
        assert again.numbers() == asked.numbers() and str(again) == str(asked)


def test_another_meaning_is_paid_for(tmp_path: Path) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        curator.ask(ASKED, epsilon=1.0)
        for other in (ASKED.replace("AND", "OR"), ASKED.replace("> 30", "< 30"), ASKED.replace("40", "41")):
            assert not curator.ask(other, epsilon=1.0).recalled
        assert curator.budget()[0].left.epsilon == 6


def test_what_is_computed_from_released_numbers_is_free_and_follows_the_second_question(
    tmp_path: Path,
) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        first = curator.ask(ASKED, epsilon=1.0).to_arrow()["n"][0].as_py()
        double = curator.ask(ASKED.replace("COUNT(*) AS n", "2 * COUNT(*) AS twice"), epsilon=1.0)
        assert double.recalled and double.to_arrow()["twice"][0].as_py() == 2 * first


def test_times_and_names_of_files_make_no_other_data(tmp_path: Path) -> None:
    file = policy(tmp_path)
    rows = tmp_path / "people.parquet"
    with Curator.open(file) as curator:
        first = curator.ask(COUNT, epsilon=1.0).to_arrow()
        os.utime(rows)
        assert curator.ask(COUNT, epsilon=1.0).to_arrow() == first
    shutil.copy(rows, tmp_path / "moved.parquet")
    rows.unlink()
    for name in ("moved.parquet", str(tmp_path / "moved.parquet"), "./*.parquet"):
        file.write_text(re.sub("parquet: [^}]*", f"parquet: '{name}'", file.read_text()))
        with Curator.open(file) as curator:
            assert FREE in curator.price(COUNT, epsilon=1.0).notes
            assert curator.ask(COUNT, epsilon=1.0).to_arrow() == first
            assert curator.budget()[0].left.epsilon == 9


def test_other_rows_are_other_data_whatever_the_times_say(tmp_path: Path) -> None:
    file = policy(tmp_path)
    rows = tmp_path / "people.parquet"
    with Curator.open(file) as curator:
        curator.ask(COUNT, epsilon=1.0)
        before, seen = rows.read_bytes(), rows.stat()
        ages = [age % 89 for age in range(100)]
        pq.write_table(pa.table({"id": range(100), "age": ages}), rows)
        os.utime(rows, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert not curator.ask(COUNT, epsilon=1.0).recalled
        rows.write_bytes(before)
        assert curator.ask(COUNT, epsilon=1.0).recalled
        assert curator.budget()[0].left.epsilon == 8


CHANGED_FILES = """
sources: {s: {%s}}
tables: {people: {source: s, unit: id, columns: {id: {type: integer}, age: {type: integer}}}}
budget: {epsilon: 1000, delta: 0}
"""
OF_AGE_2 = "SELECT COUNT(*) AS n FROM people WHERE age = 2"


def csv_of(file: Path, age: int) -> None:
    file.write_text("id,age\n" + "".join(f"{row},{age}\n" for row in range(200)))


def database_of(file: Path, age: int) -> None:
    """Write a database from another process, as long as this one has it attached."""
    made = f"CREATE OR REPLACE TABLE people AS SELECT range AS id, {age} AS age FROM range(200)"
    again = f"UPDATE people SET age = {age}"
    run = f"import duckdb; duckdb.connect({str(file)!r}).execute({again if file.exists() else made!r})"
    subprocess.run([sys.executable, "-c", run], check=True)


@pytest.mark.parametrize(("kind", "write"), [("csv", csv_of), ("duckdb", database_of)])
@pytest.mark.filterwarnings("ignore:budget")
def test_an_answer_is_about_the_rows_under_whose_version_it_is_on_record(
    tmp_path: Path, kind: str, write: Callable[[Path, int], None]
) -> None:
    """A file is changed in place while a curator is open; its size, its inode and its time stay the same."""
    rows, file = tmp_path / f"people.{kind}", tmp_path / "curator.yaml"
    file.write_text(CHANGED_FILES % f"{kind}: people.{kind}")
    write(rows, 1)
    with Curator.open(file, new_ledger=True) as curator:
        assert abs(curator.ask(OF_AGE_2, epsilon=50.0).to_arrow()["n"][0].as_py()) < 20
        seen = rows.stat()
        write(rows, 2)
        os.utime(rows, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        now = rows.stat()
        assert (now.st_size, now.st_ino, now.st_mtime_ns) == (seen.st_size, seen.st_ino, seen.st_mtime_ns)
        later = curator.ask(OF_AGE_2, epsilon=50.0)
        assert not later.recalled and abs(later.to_arrow()["n"][0].as_py() - 200) < 20
    with Curator.open(file) as curator:
        again = curator.ask(OF_AGE_2, epsilon=50.0)
        assert again.recalled and again.to_arrow() == later.to_arrow()
        rows.touch()
        assert curator.ask(OF_AGE_2, epsilon=50.0).recalled


def test_a_cheaper_ask_gets_the_better_answer_on_record(tmp_path: Path) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        for epsilon in (0.25, 1.0, 2.0):
            curator.ask(COUNT, epsilon=epsilon)
        best = curator.ask(COUNT, epsilon=2.0)
        assert BETTER.format(2) in curator.price(COUNT, epsilon=0.5).notes
        cheap = curator.ask(COUNT, epsilon=0.5)
        assert cheap.recalled and cheap.to_arrow() == best.to_arrow()
        assert cheap.to_pandas(intervals=0.95).equals(best.to_pandas(intervals=0.95))
        assert FREE in curator.price(COUNT, epsilon=1.0).notes
        assert curator.budget()[0].left.epsilon == 6.75
        assert not curator.ask(COUNT, epsilon=2.5).recalled
        assert not curator.ask(COUNT, epsilon=0.5, confidence=0.9).recalled
        assert not curator.ask(f"{COUNT} WHERE age > 3", epsilon=0.5).recalled


def test_other_ranks_of_public_groups_are_free_and_covered() -> None:
    """With little noise. Each town's ages are apart, so that trees in a wrong order would show."""
    towns, ages = ["york", "bath", "hull"], [range(20, 40), range(50, 70), range(80, 100)]
    rows = [(town, age) for town, span in zip(towns, ages, strict=True) for age in span for _ in range(50)]
    frame = pa.table({"town": [town for town, _ in rows], "age": [age for _, age in rows]})
    with pytest.warns(UserWarning, match="protects nobody"):
        curator = Curator.from_tables(
            people=frame, unit="row", bounds={"age": (0, 120)}, domains={"town": towns}, budget=(100, 1e-6)
        )
    curator.ask("SELECT town, MEDIAN(age) AS a FROM people GROUP BY town", 20.0)
    other = "SELECT town, QUANTILE_CONT(age, 0.87) AS a FROM people GROUP BY town ORDER BY a"
    assert FREE in curator.price(other, 20.0).notes
    answer = curator.ask(other, 20.0)
    assert answer.recalled and curator.budget()[0].left.epsilon == 80
    said = dict(zip(*answer.to_arrow().to_pydict().values(), strict=True))
    assert {town: said[town] for town in towns} == {"york": 37, "bath": 67, "hull": 97}
    mixed = "SELECT town, MEDIAN(age) AS a, COUNT(*) AS n FROM people GROUP BY town"
    assert not curator.ask(mixed, 20.0).recalled


def test_a_question_under_another_relation_is_paid_for(tmp_path: Path) -> None:
    file = policy(tmp_path)
    with Curator.open(file) as curator:
        first = curator.ask(COUNT, epsilon=1.0).to_arrow()
    declared = file.read_text()
    file.write_text(declared.replace("unit: id,", "unit: id, relation: replace,"))
    with Curator.open(file) as curator:
        assert FREE not in curator.price(COUNT, epsilon=1.0).notes
        assert not curator.ask(COUNT, epsilon=1.0).recalled
    file.write_text(declared)
    with Curator.open(file) as curator:
        assert curator.ask(COUNT, epsilon=1.0).to_arrow() == first
