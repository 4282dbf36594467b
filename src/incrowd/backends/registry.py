"""Chooses the engine of a catalog: by the scheme of its sources' URL, or DuckDB for files and frames.

Another package adds an engine with an entry point of the group `incrowd.engines`. Its name is the URL scheme;
its object is called with the catalog and returns a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from incrowd.backends.backend import Backend
from incrowd.backends.duckdb import DuckDB
from incrowd.backends.sources import one_url
from incrowd.catalog import Catalog
from incrowd.catalog.addresses import wrong_url
from incrowd.errors import CatalogError

Engine = Callable[[Catalog], Backend]
GROUP = "incrowd.engines"
_OWN: Mapping[str, tuple[str, str, str]] = {
    **dict.fromkeys(("postgresql", "postgres"), ("incrowd.backends.postgres", "Postgres", "postgres")),
    **dict.fromkeys(("spark", "sc", "k8s", "yarn"), ("incrowd.backends.spark", "Spark", "spark")),
}
"""For each scheme: the module and class of its engine, and the extra that installs its packages."""


def schemes() -> tuple[str, ...]:
    """The URL schemes for which an engine is known.

    >>> "postgresql" in schemes(), "spark" in schemes()
    (True, True)
    """
    return tuple(sorted({*_OWN, *(point.name for point in entry_points(group=GROUP))}))


def open_backend(catalog: Catalog, frames: Mapping[str, Any] | None = None) -> Backend:
    """The engine of a catalog, with its tables."""
    if all(catalog.source_of(name).url is None for name in catalog.tables):
        return DuckDB(catalog, frames)
    return _engine(one_url(catalog).partition("://")[0].lower())(catalog)


def describe(url: str) -> dict[str, dict[str, str]]:
    """The tables of a database that its role may read, with the types of their columns."""
    if wrong := wrong_url(url):
        raise CatalogError(f"The database's URL is not understood: {wrong}.")
    scheme = url.partition("://")[0].lower()
    listing = getattr(_engine(scheme), "describe", None)
    if listing is None:
        raise CatalogError(f"The tables of {scheme} cannot be listed; write the file by hand, or with files.")
    tables: dict[str, dict[str, str]] = listing(url)
    if not tables:
        raise CatalogError("The database has no table that its role may read; GRANT SELECT on one first.")
    return tables


def _engine(scheme: str) -> Engine:
    if scheme in _OWN:
        module, name, extra = _OWN[scheme]
        try:
            engine: Engine = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise CatalogError(
                f"sources: {scheme} needs the package {error.name}: pip install 'incrowd[{extra}]'."
            ) from None
        return engine
    for point in entry_points(group=GROUP):
        if point.name == scheme:
            plugin: Engine = point.load()
            return plugin
    raise CatalogError(f"sources: no engine is installed for {scheme}; there are {', '.join(schemes())}.")
