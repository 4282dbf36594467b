"""The interface of an engine: each of ours has all of its methods, with the same parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from incrowd.backends.backend import Backend
from incrowd.backends.duckdb import DuckDB


def methods(engine: type) -> Mapping[str, Callable[..., Any]]:
    """The methods of an engine that are no secret of its own."""
    members = inspect.getmembers(engine, inspect.isfunction)
    return {name: method for name, method in members if not name.startswith("_")}


def missing(engine: type) -> set[str]:
    """The methods of the interface that an engine lacks or takes with other parameters."""
    own = methods(engine)
    return {
        name
        for name, method in methods(Backend).items()
        if name not in own
        or list(inspect.signature(own[name]).parameters.values())[1:]
        != list(inspect.signature(method).parameters.values())[1:]
    }


def test_the_interface_is_documented() -> None:
    assert set(methods(Backend)) == {
        "public_types",
        "refresh",
        "version",
        "snapshot",
        "prove",
        "run",
        "close",
    }
    assert all(method.__doc__ for method in methods(Backend).values())


def test_duckdb_is_an_engine() -> None:
    assert not missing(DuckDB)


@pytest.mark.parametrize(("module", "name"), [("postgres", "Postgres"), ("spark", "Spark")])
def test_servers_are_engines(module: str, name: str) -> None:
    library = pytest.importorskip({"postgres": "psycopg", "spark": "pyspark"}[module])
    assert library is not None
    assert not missing(getattr(pytest.importorskip(f"incrowd.backends.{module}"), name))


def test_an_object_with_another_run_is_none() -> None:
    class Half:
        """An engine that cannot tell how far it is."""

        def run(self, tree: object) -> None:
            """Nothing."""

        def close(self) -> None:
            """Nothing."""

    assert missing(Half) == {"public_types", "refresh", "version", "snapshot", "prove", "run"}
