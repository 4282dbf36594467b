"""The settings under which PostgreSQL runs a statement: the same for every role, database and URL.

A role or a database may have its own settings (ALTER ROLE ... SET), and some change the meaning of SQL or
make it raise: `transform_null_equals` makes x = NULL true, `gin_fuzzy_search_limit` drops rows at random,
`row_security` = off raises if a policy applies. So each transaction first resets every setting that a role
may change to PostgreSQL's built-in value, except those that change only the speed of a statement. The reset
holds for one transaction: behind a pooler, the next one may use another connection.
"""

from __future__ import annotations

from typing import Any

import psycopg

SPEED = (
    "enable_.*|.*_cost|.*parallel.*|geqo.*|jit.*|.*_collapse_limit|.*io_concurrency|.*work_mem|temp_buffers|"
    "hash_mem_multiplier|effective_cache_size|cursor_tuple_fraction|plan_cache_mode|constraint_exclusion|"
    "default_statistics_target|recursive_worktable_factor|vacuum_.*|tcp_.*|log_.*|trace_.*|debug_.*|"
    "application_name|client_min_messages|local_preload_libraries|synchronous_commit"
)
"""Names of settings that change no result: the owner may tune them."""
FIXED = {
    # Tables are named with their schemas. On another path, anybody's operator could replace a built-in one.
    "search_path": "pg_catalog, pg_temp",
    # In any other encoding some text cannot be sent, and a row that holds it would cause an error.
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    # Statements here are long and their costs overestimated, so compiling costs more time than it saves.
    "jit": "off",
}
_RESET = """
SELECT set_config(name, boot_val, true) FROM pg_catalog.pg_settings
WHERE context = 'user' AND setting IS DISTINCT FROM boot_val AND boot_val IS NOT NULL
  AND name !~ %(speed)s AND NOT name = ANY(%(fixed)s)
  AND name NOT IN ('transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
"""


def settle(connection: psycopg.Connection[Any], seconds: int) -> None:
    """Fix the settings of the transaction that begins here. Each of its statements may take `seconds`."""
    own = {**FIXED, "statement_timeout": str(seconds * 1000)}
    calls = ", ".join(["pg_catalog.set_config(%s, %s, true)"] * len(own))
    # Set the search path first: otherwise the role's own path resolves the names of the next statement.
    connection.execute(f"SELECT {calls}".encode(), [word for pair in own.items() for word in pair])
    connection.execute(_RESET, {"speed": f"^({SPEED})$", "fixed": list(own)})
