"""Engines: run a bounded plan, return exact integers. They know neither noise nor budgets."""

from incrowd.backends.backend import Backend, Progress
from incrowd.backends.duckdb import DuckDB
from incrowd.backends.frames import frame_types
from incrowd.backends.registry import describe, open_backend, schemes
from incrowd.backends.statement import Part, Statement, census_statement, release_statement

__all__ = [
    "Backend",
    "DuckDB",
    "Part",
    "Progress",
    "Statement",
    "census_statement",
    "describe",
    "frame_types",
    "open_backend",
    "release_statement",
    "schemes",
]
