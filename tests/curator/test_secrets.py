"""Passwords, folders and settings of the curator's machine stay with the curator."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pyarrow as pa
import pytest

from incrowd import Curator, IncrowdError, QueryError
from incrowd.backends import describe, open_backend
from incrowd.catalog import parse
from incrowd.curator.ledger import Ledger

PASSWORD = "open-sesame"
POLICY = """
sources: {{s: {{url: "{url}"}}}}
tables: {{t: {{unit: row, columns: {{x: {{type: integer}}}}}}}}
budget: {{epsilon: 1}}
ledger: "{url}"
"""
URLS = [
    f"postgresql://me:{PASSWORD}@127.0.0.1:1/db",
    f"postgresql://me:{PASSWORD}@127.0.0.1:1/db?sslmode=bogus",
    f"postgresql://me:{PASSWORD} b@127.0.0.1:1/db",
    f"postgresql://me@127.0.0.1:1/db?password={PASSWORD}",
    f"postgresql://me:{PASSWORD}@[::1/db",
    f"mysql://me:{PASSWORD}@127.0.0.1/db",
]
TABLE = pa.table({"id": [1, 2, 3], "x": [1, 2, 3]})


def everything_of(error: BaseException | None) -> str:
    """An error with all that it carries; not the lines of code, which the caller wrote."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error), *traceback.format_exception_only(error)]
        error = error.__cause__ or error.__context__
    return "".join(texts)


@pytest.mark.parametrize("url", URLS)
def test_no_error_holds_a_password(url: str) -> None:
    sound = parse(POLICY.format(url=URLS[0]))
    tries: list[Callable[[], object]] = [
        lambda: open_backend(parse(POLICY.format(url=url))),
        lambda: describe(url),
        lambda: Ledger.open(url, sound),
    ]
    for attempt in tries:
        with pytest.raises(IncrowdError) as told:
            attempt()
        assert PASSWORD not in everything_of(told.value)


def test_no_text_of_a_catalog_holds_a_password() -> None:
    catalog = parse(POLICY.format(url=URLS[0]))
    for thing in (catalog, catalog.sources, catalog.sources["s"]):
        assert PASSWORD not in repr(thing) + str(thing)
    assert catalog.source_of("t").url == URLS[0]


@pytest.mark.parametrize(
    "function",
    [
        "current_setting('temp_directory')", "CURRENT_SETTING('home_directory')", "version()", "user",
        "current_database()", "current_user", "session_user", "current_schemas(true)", "getvariable('x')",
        "inet_server_addr()", "getenv('HOME')", "pg_get_viewdef(1)", "current_catalog",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "form", ["SELECT COUNT(*) AS n, {} AS v FROM t", "SELECT n FROM ({}) AS q WHERE {} = n"]
)
def test_settings_and_folders_of_the_engine_cannot_be_asked_for(function: str, form: str) -> None:
    sql = (
        form.format(function)
        if form.count("{}") == 1
        else form.format("SELECT COUNT(*) AS n FROM t", function)
    )
    with Curator.from_tables(t=TABLE, unit="id", budget=(1.0, 0.0)) as curator, pytest.raises(QueryError):
        curator.price(sql, epsilon=0.1)


def test_todays_date_can_still_be_asked_for() -> None:
    with Curator.from_tables(t=TABLE, unit="id", budget=(1.0, 0.0)) as curator:
        curator.price("SELECT COUNT(*) AS n, current_date AS day, now() AS moment FROM t", epsilon=0.1)
