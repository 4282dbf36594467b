"""Paths and URLs that no file or server can have are refused, and nothing of a URL is shown."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.catalog import Catalog, check
from incrowd.catalog.addresses import wrong_account, wrong_path, wrong_url
from incrowd.errors import CatalogError

SECRETS = ("s3cr", "etpw", "127.0.0.1")


def declared(source: dict[str, Any], table: dict[str, Any] | None = None, **more: Any) -> Catalog:
    people = {"unit": "id", "columns": {"id": {"type": "integer"}}, **(table or {})}
    return check({"sources": {"s": source}, "tables": {"people": people}, "budget": {"epsilon": 1.0}, **more})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cr@etpw@127.0.0.1:1/x",
        "postgresql://u:s3cr/etpw@127.0.0.1:1/x",
        "postgresql://u:s3cr#etpw@127.0.0.1/x",
        "postgresql://u:s3cr?etpw@127.0.0.1/x",
        "postgresql:u:s3cretpw@127.0.0.1/x",
        "u:s3cretpw@127.0.0.1",
    ],
)
def test_a_url_that_is_taken_apart_otherwise_than_meant_is_refused_and_not_shown(url: str) -> None:
    assert wrong_url(url)
    for make in (
        lambda: declared({"url": url}),
        lambda: declared({"csv": "a.csv"}, ledger=url) if "://" in url else declared({"url": url}),
        lambda: declared({"csv": "a.csv"}, anchor=url) if "://" in url else declared({"url": url}),
    ):
        with pytest.raises(CatalogError) as told:
            make()
        assert not [secret for secret in SECRETS if secret in str(told.value)]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host/db", "postgresql:///db?host=/run", "postgresql://u:a%40b@[::1]:5432/db",
        "postgres://u:p[w@one:1,two:2/x@y?options=-c%20a@b", "spark://local[2]", "spark://host:7077", "yarn://",
        "k8s://https://host:443", "sc://host:15002/;token=a@b", "sqlite:////home/ana/a.ledger",
    ],
)  # fmt: skip
def test_urls_of_servers_are_taken_as_they_are(url: str) -> None:
    assert wrong_url(url) == wrong_account(url) == ""


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize(
    "url", ["https://u:s3cretpw@127.0.0.1:1/x.csv", "s3://s3cretpw/x", "https:/u:s3cretpw@127.0.0.1/x"]
)
def test_files_are_local_and_a_url_in_their_place_is_not_shown(kind: str, url: str) -> None:
    with pytest.raises(CatalogError) as told:
        declared({kind: url})
    assert str(told.value) == (
        f"catalog: sources.s.{kind}: expected the path of a local file, not a URL; copy the file here and "
        "name the copy."
    )
    if kind != "duckdb":
        with pytest.raises(CatalogError) as told:
            declared({kind: "folder"}, {"path": url})
        assert str(told.value) == (
            "catalog: tables.people.path: expected paths below the source's, not a URL; copy the file there."
        )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("x" * 256, "longer"), ("x/" * 2500, "longer"), ("a\0b", "NUL"), ("\ud800", "half a character"),
        ("é" * 128, "longer"), ("x" * 255, ""), ("\udce9t\udce9", ""), ("C:\\people.csv", ""),
    ],
)  # fmt: skip
def test_paths_that_no_file_has_are_told_in_few_words(path: str, said: str) -> None:
    assert said in wrong_path(path) and bool(said) == bool(wrong_path(path))
    if not said:
        return
    for more in ({"csv": path}, {"parquet": [path]}):
        with pytest.raises(CatalogError) as told:
            declared(more)
        assert said in str(told.value) and len(str(told.value)) < 100


def test_a_ledger_leaves_room_for_the_names_beside_it() -> None:
    assert wrong_account("x" * 225) == ""
    for field in ("ledger", "anchor"):
        with pytest.raises(CatalogError) as told:
            declared({"csv": "a.csv"}, **{field: "x" * 226})
        assert str(told.value) == f"catalog: {field}: the path is longer than one may be."


def test_a_command_that_keeps_an_anchor_holds_no_nul() -> None:
    with pytest.raises(CatalogError, match="must not hold the character NUL"):
        declared({"csv": "a.csv"}, anchor=["echo", "\0"])
