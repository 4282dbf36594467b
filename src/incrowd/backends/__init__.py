"""Engines: run a bounded plan, return exact integers. They know neither noise nor budgets."""

from incrowd.backends.backend import Backend, Progress, Reader, Snapshot
from incrowd.backends.duckdb import DuckDB
from incrowd.backends.duckdb_spill import ENCRYPTED
from incrowd.backends.frames import Frame, open_frame
from incrowd.backends.private_folders import PrivateFolder
from incrowd.backends.registry import describe, open_backend, schemes
from incrowd.backends.statement import Part, Statement, census_statement, range_statement, release_statement
from incrowd.backends.trees import distinct_values, table_rows

__all__ = [
    "ENCRYPTED",
    "Backend",
    "DuckDB",
    "Frame",
    "Part",
    "PrivateFolder",
    "Progress",
    "Reader",
    "Snapshot",
    "Statement",
    "census_statement",
    "describe",
    "distinct_values",
    "open_backend",
    "open_frame",
    "range_statement",
    "release_statement",
    "schemes",
    "table_rows",
]
