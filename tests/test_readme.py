"""The README is true: its session runs, its catalog loads, its SQL is answered, its commands exist.

Noise has no seed, so the session's output is compared by shape: the same lines with every number replaced by
#, except those that involve no noise. Printed numbers must lie in their printed intervals, and both the
README's numbers and fresh ones near the truth.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from incrowd.catalog import load
from incrowd.cli import main
from incrowd.curator import Curator
from incrowd.data import adult
from tests.hospital import ROOT, blocks, build

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^\|[^|]*\| `(SELECT.*)` \|$", README, re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")


def session() -> list[doctest.Example]:
    (block,) = blocks("README.md", "python")
    return doctest.DocTestParser().get_examples(block)


def run(examples: list[doctest.Example]) -> list[str]:
    """What each line of a session prints, run for real."""
    names: dict[str, object] = {}
    printed = []
    for example in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(example.source, "README.md", "single"), names)
        printed.append(out.getvalue())
    return printed


def shape(text: str) -> list[str]:
    """The lines with numbers as # and blanks as one."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines()]


def rows(text: str) -> list[dict[str, str]]:
    """The lines of a printed table; sentences below it are left out."""
    header, *lines = (line.split() for line in text.splitlines() if not line.startswith("Small groups"))
    return [dict(zip(header, line, strict=True)) for line in lines]


@pytest.fixture(scope="module")
def fresh() -> list[str]:
    return run(session())


def test_the_session_prints_what_the_readme_shows_up_to_noise(fresh: list[str]) -> None:
    for example, printed in zip(session(), fresh, strict=True):
        assert shape(printed) == shape(example.want), example.source


def test_lines_without_noise_are_shown_to_the_digit(fresh: list[str]) -> None:
    for example, printed in zip(session(), fresh, strict=True):
        if "price" in example.source or "recalled" in example.source:
            assert printed == example.want


@pytest.mark.statistical
@pytest.mark.parametrize("written", [True, False], ids=["README", "fresh"])
def test_numbers_lie_in_their_intervals_and_near_the_truth(fresh: list[str], written: bool) -> None:
    # Intervals hold with 95%; ten times their width fails by chance below 1e-12 under Laplace noise.
    place = next(i for i, example in enumerate(session()) if "print(curator.ask" in example.source)
    table = rows(session()[place].want if written else fresh[place])
    exact = {
        row["education"]: row
        for row in adult().group_by("education").aggregate([("age", "mean"), ("age", "count")]).to_pylist()
    }
    assert len(table) == 3
    for row in table:
        truth = exact[row["education"]]
        for name, true in (("n", truth["age_count"]), ("age", truth["age_mean"])):
            low, value, high = (float(row[column]) for column in (f"{name}_low", name, f"{name}_high"))
            assert low <= value <= high
            assert abs(value - true) <= 10 * (high - low)


def test_the_session_is_about_ten_lines() -> None:
    (block,) = blocks("README.md", "python")
    assert len(block.splitlines()) <= 15


def test_the_readme_opens_with_one_sentence_and_two_commands() -> None:
    title, sentence, commands = re.split(r"\n\n", README)[:3]
    assert title == "# Incrowd"
    assert sentence.count(". ") == 0 and sentence.endswith(".")
    assert [line.partition("#")[0].strip() for line in commands.splitlines()[1:-1]] == [
        "make demo",
        "make test",
    ]
    makefile = (ROOT / "Makefile").read_text()
    assert "\ndemo:" in makefile and "\ntest:" in makefile


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hospital"))


@pytest.fixture(scope="module")
def curator(hospital: Path) -> Iterator[Curator]:
    with Curator.open(hospital, new_ledger=True) as opened:
        yield opened


def test_the_catalog_of_the_readme_loads(hospital: Path) -> None:
    catalog = load(hospital)
    assert set(catalog.tables) == {"visits", "patients", "wards"} and set(catalog.analysts) == {"ana", "ben"}


def test_there_are_questions_to_test() -> None:
    assert len(QUESTIONS) >= 12


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_of_the_readme_is_answered(curator: Curator, question: str) -> None:
    answer = curator.ask(question, epsilon=0.02, analyst="ana")
    assert answer.to_arrow(0.95).num_columns >= 1


def test_every_command_line_of_the_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path)
    (block,) = blocks("README.md", "console")
    lines = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "found"]) == 0
    for command, *arguments in lines:
        assert command == "incrowd"
        if arguments[0] == "init":
            arguments = ["init", "visits/1.parquet", "--out", "made.yaml", "--yes", *arguments[2:]]
        if arguments[0] == "price":
            arguments += ["--analyst", "ana"]
        assert main(arguments) == 0, capsys.readouterr().err
    assert set(load(tmp_path / "made.yaml").tables) == {"t_1"}
