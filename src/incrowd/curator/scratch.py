"""A DuckDB for tables that are in memory anyway: post-processing, and sorting results to their groups.

Starting an instance costs far more than a small query, so a process keeps one, without access to files, and
hands out connections that see only what is registered with them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

_lock = threading.Lock()
_instances: dict[int, duckdb.DuckDBPyConnection] = {}


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of one's own; what is registered with it is gone afterwards."""
    with _lock:
        # A forked child must not use its parent's instance.
        instance = _instances.get(os.getpid())
        if instance is None:
            instance = _instances[os.getpid()] = duckdb.connect(config={"enable_external_access": "false"})
            instance.execute("SET TimeZone = 'UTC'")
            # It lifts shared expressions out of TRY(...), where they raise.
            instance.execute("SET disabled_optimizers = 'common_subexpressions'")
        connection = instance.cursor()
    try:
        yield connection
    finally:
        connection.close()
