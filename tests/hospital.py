"""The hospital of the README: its YAML, taken from there, with small real files beside it."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language in a page of the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


ROWS = {
    "wards": "SELECT * FROM (VALUES ('A', 1), ('B', 1), ('C', 2)) AS t(name, floor)",
    "visits": "SELECT i % 700 AS patient, "
    "DATE '2024-01-01' + CAST(i % 300 AS INTEGER) AS day, "
    "['A', 'B', 'C'][1 + i % 3] AS ward, CAST(i % 5000 AS DOUBLE) AS cost, "
    "CASE WHEN i % 10 < 9 THEN 'flu' ELSE 'cold' END AS diagnosis FROM range(2000) AS r(i)",
    "patients": "SELECT i AS patient, 1930 + i % 80 AS born, "
    "['female', 'male', 'other'][1 + i % 3] AS sex FROM range(700) AS r(i)",
}
"""The rows of each table, in DuckDB's SQL."""


def build(folder: Path) -> Path:
    """Write the README's catalog and the tables it names; give the catalog's path."""
    (folder / "visits").mkdir()
    files = {"wards": "wards.csv", "patients": "patients.csv", "visits": "visits/1.parquet"}
    with duckdb.connect(":memory:") as engine:
        for name, file in files.items():
            engine.execute(f"COPY ({ROWS[name]}) TO '{folder / file}'")
    (text,) = blocks("README.md", "yaml")
    catalog = folder / "curator.yaml"
    catalog.write_text(text, encoding="utf-8")
    return catalog
