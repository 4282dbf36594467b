"""The documentation says all that there is, and every example in it does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel

import incrowd
from incrowd.catalog import Catalog, parse
from incrowd.cli.entry import app
from incrowd.curator import Curator
from incrowd.errors import QueryError
from incrowd.explain.composition import KINDS
from incrowd.query import clause, sql
from tests.hospital import ROOT, blocks, build
from tests.query.corpus import page

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")),
)
REFUSED = re.findall(
    r"^\| `(.+)` \| .+ \| `(.+)` \|$",
    (ROOT / "docs/sql.md").read_text().partition("## What is refused")[2],
    re.MULTILINE,
)


def commands(command: Any, path: tuple[str, ...] = ("incrowd",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its path, groups of commands left out."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def fields(model: type[BaseModel], seen: set[type[BaseModel]] | None = None) -> Iterator[tuple[str, str]]:
    """Every field of the owner's file, with the part that it belongs to."""
    seen = set() if seen is None else seen
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        yield model.__name__, name
        todo: list[Any] = [field.annotation]
        while todo:
            annotation = todo.pop()
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                yield from fields(annotation, seen)
            todo += get_args(annotation)


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    with Curator.open(build(tmp_path_factory.mktemp("hospital")), new_ledger=True) as opened:
        yield opened


def priced(curator: Curator, question: str) -> None:
    curator.price(question, epsilon=0.1, analyst="ana")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_documented(path: tuple[str, ...]) -> None:
    text = (ROOT / "docs/cli.md").read_text()
    assert f"## `{' '.join(path)}`\n" in text
    for parameter in COMMANDS[path].params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-") and option != "--help":
                assert f"`{option}`" in text or f"`{option} " in text, (
                    f"{option} of {' '.join(path)} is undocumented"
                )


def test_every_command_has_json_and_a_line_of_help() -> None:
    for path, command in COMMANDS.items():
        assert any("--json" in option.opts for option in command.params), path
        assert command.help and command.help.endswith("."), path


@pytest.mark.parametrize(("part", "field"), list(fields(Catalog)), ids="/".join)
def test_every_field_of_the_catalog_is_documented(part: str, field: str) -> None:
    assert f"`{field}`" in (ROOT / "docs/owner.md").read_text(), f"{part}.{field} is undocumented"


def test_every_mechanism_of_compose_is_documented() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    assert [kind for kind in (*KINDS, "approximate") if f"| `{kind}` |" not in text] == []


def test_every_option_of_the_sql_clause_is_documented() -> None:
    text = (ROOT / "docs/sql.md").read_text()
    options = {*clause.OPTIONS, *sql._NAMED}
    assert [option for option in options if f"`{option}`" not in text] == []


def test_the_page_about_grants_runs_as_it_stands() -> None:
    (block,) = blocks("docs/grants.md", "python")
    names: dict[str, Any] = {}
    exec(compile(block, "docs/grants.md", "exec"), names)
    grant = names["grant"]
    assert not grant.recalled and grant.left == {} and 30 < names["median"] < 45
    assert grant.recorded is not None and names["curator"].ledger.verify().ok


def test_the_page_about_tuning_runs_as_it_stands() -> None:
    (block,) = blocks("docs/tune.md", "python")
    names: dict[str, Any] = {}
    exec(compile(block, "docs/tune.md", "exec"), names)
    assert len(names["frame"]) == len(names["profile"].readings) and names["curator"].ledger.verify().ok


def test_the_file_of_the_page_about_tuning_loads() -> None:
    (text,) = blocks("docs/tune.md", "yaml")
    loaded = parse(text + "sources: {main: {csv: visits.csv}}\nbudget: {epsilon: 1}\n")
    assert loaded.bought_of("visits").contribution is not None


@pytest.mark.parametrize("question", blocks("docs/sql.md", "sql"))
def test_sql_that_the_page_shows_can_be_asked(curator: Curator, question: str) -> None:
    priced(curator, question)


@pytest.mark.parametrize(("refused", "instead"), REFUSED)
def test_sql_that_the_page_calls_refused_is_refused_and_the_other_is_not(
    curator: Curator, refused: str, instead: str
) -> None:
    with pytest.raises(QueryError) as error:
        priced(curator, refused)
    assert str(error.value).endswith((".", "?")) and "\n" not in str(error.value)
    priced(curator, instead)


def test_the_tables_of_the_page_are_those_of_the_corpus() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text, "run make docs-sql"


def test_there_are_refusals_to_test() -> None:
    assert len(REFUSED) >= 12


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page} points to {target}"


def test_the_version_of_the_package_is_in_the_changelog() -> None:
    assert f"## [{incrowd.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
