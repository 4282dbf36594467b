"""A DuckDB for tables that are in memory anyway: post-processing, and sorting results to their groups.

Starting an instance costs far more than a small query, so a process keeps one, without access to files, and
hands out connections that see only what is registered with them. What it writes to disk for want of memory is
private, since exact numbers are sorted here too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from incrowd.backends import ENCRYPTED, PrivateFolder

_lock = threading.Lock()
_instances: dict[int, duckdb.DuckDBPyConnection] = {}
_folders: dict[int, PrivateFolder] = {}


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of one's own; what is registered with it is gone afterwards."""
    with _lock:
        # A forked child must not use its parent's instance.
        instance = _instances.get(os.getpid())
        if instance is None:
            instance = _instances[os.getpid()] = _opened()
        connection = instance.cursor()
    try:
        yield connection
    finally:
        connection.close()


def _opened() -> duckdb.DuckDBPyConnection:
    folder = _folders[os.getpid()] = PrivateFolder()
    instance = duckdb.connect(config={"enable_external_access": "false", "temp_directory": str(folder.path)})
    # common_subexpressions lifts shared expressions out of TRY(...), where they raise.
    for setting in (
        "SET TimeZone = 'UTC'",
        "SET disabled_optimizers = 'common_subexpressions'",
        *ENCRYPTED,
    ):
        instance.execute(setting)
    return instance
