"""The engine of a catalog is that of its URL's scheme, DuckDB without one, and never a guess."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from incrowd.backends import registry
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import CatalogError

OWN = ("k8s", "postgres", "postgresql", "sc", "spark", "yarn")


@dataclass(frozen=True)
class Point:
    """An entry point of another package."""

    name: str
    engine: Any

    def load(self) -> Any:
        """The engine."""
        return self.engine


def catalog(**source: str) -> Catalog:
    """A catalog of one table."""
    tables = {"people": {"unit": "id", "columns": {"id": {"type": "integer"}}}}
    return check({"sources": {"s": source}, "tables": tables, "budget": {"epsilon": 1.0}})


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs engines of other packages by their schemes."""

    def installed(**engines: Any) -> None:
        points = [Point(name, engine) for name, engine in engines.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: points if group == registry.GROUP else [])

    return installed


def test_schemes_are_ours_and_those_of_installed_engines(install: Callable[..., None]) -> None:
    install()
    assert registry.schemes() == OWN
    install(mars=object, postgres=object)
    assert registry.schemes() == ("k8s", "mars", "postgres", "postgresql", "sc", "spark", "yarn")


@pytest.mark.parametrize("source", [{"frame": "people"}, {"csv": "people.csv"}, {"duckdb": "a.duckdb"}])
def test_files_and_frames_are_read_by_duckdb(source: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "DuckDB", lambda *given: given)
    here, frames = catalog(**source), {"people": [1]}
    assert registry.open_backend(here, frames) == (here, frames)  # type: ignore[comparison-overlap]


def test_an_installed_engine_is_called_with_the_catalog(install: Callable[..., None]) -> None:
    install(venus=lambda _: "another", mars=lambda catalog: ("mars", catalog))
    asked = catalog(url="MARS://olympus")
    assert registry.open_backend(asked) == ("mars", asked)  # type: ignore[comparison-overlap]


def test_an_unknown_scheme_is_refused_with_those_that_are_known(install: Callable[..., None]) -> None:
    install(mars=object)
    with pytest.raises(CatalogError) as caught:
        registry.open_backend(catalog(url="venus://x"))
    known = ", ".join(sorted([*OWN, "mars"]))
    assert str(caught.value) == f"sources: no engine is installed for venus; there are {known}."


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [("postgresql", "psycopg", "postgres"), ("sc", "pyspark", "spark"), ("k8s", "pyspark", "spark")],
)
def test_a_missing_package_is_named_with_what_installs_it(
    scheme: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(registry, "import_module", absent)
    with pytest.raises(CatalogError) as caught:
        registry.describe(f"{scheme}://host")
    assert (
        str(caught.value) == f"sources: {scheme} needs the package {package}: pip install 'incrowd[{extra}]'."
    )
    assert caught.value.__suppress_context__


def test_tables_are_listed_by_engines_that_can(install: Callable[..., None]) -> None:
    class Mars:
        """An engine that lists its tables."""

        @staticmethod
        def describe(url: str) -> dict[str, dict[str, str]]:
            """The tables, and none at the other side."""
            return {} if url.endswith("dark") else {"craters": {"id": "BIGINT"}}

    install(mars=Mars, venus=object)
    assert registry.describe("Mars://x") == {"craters": {"id": "BIGINT"}}
    with pytest.raises(CatalogError, match=r"^The database has no table that its role may read; GRANT"):
        registry.describe("mars://dark")
    with pytest.raises(CatalogError, match=r"^The tables of venus cannot be listed; write the file by hand"):
        registry.describe("venus://x")


def test_a_url_that_is_taken_apart_otherwise_than_meant_is_not_tried_nor_told() -> None:
    for url in ("postgresql://ana:ses@ame@127.0.0.1/x", "postgresql:/ana:sesame@127.0.0.1/x"):
        with pytest.raises(CatalogError, match="The database's URL is not understood: ") as told:
            registry.describe(url)
        assert "ana" not in str(told.value) and "ame@" not in str(told.value)
