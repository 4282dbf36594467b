"""Really asks the questions of the corpus, on DuckDB: one curator per schema, with a budget for them all."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import duckdb
import pyarrow as pa
import yaml

from incrowd.backends import DuckDB
from incrowd.backends.frames import open_frame
from incrowd.catalog import check
from incrowd.curator import Answer, Curator
from incrowd.curator.ledger import Ledger
from tests import hospital
from tests.query.corpus.cases import HERE, Case

PRICE = {"epsilon": 20.0, "delta": 1e-5}
"""What is paid where a case says nothing: so much that every group of a schema passes its threshold."""


@functools.cache
def curator_of(schema: str) -> Curator:
    """The curator of the tables `schemas/<schema>.yaml`."""
    text = (HERE / "schemas" / f"{schema}.yaml").read_text(encoding="utf-8")
    declared = yaml.safe_load(text)
    rows = declared.pop("rows", None) or hospital.ROWS
    tables = declared.get("tables") or yaml.safe_load(hospital.blocks("README.md", "yaml")[0])["tables"]
    with duckdb.connect(":memory:") as engine:
        frames = {}
        for name, sql in rows.items():
            engine.execute(f"CREATE TABLE {name} AS {sql}")
            frames[name] = open_frame(engine.table(name).to_arrow_table(), name)
    sources = {name: {"frame": name} for name in frames}
    budget = {"epsilon": 1e6, "delta": 0.5}
    catalog = check({**declared, "sources": sources, "tables": tables, "budget": budget}, name=schema)
    return Curator(catalog, DuckDB(catalog, frames), Ledger.open(None, catalog))


def ask(case: Case, sql: str) -> Answer:
    """The answer to a question about the tables of a case, on its terms."""
    with warnings.catch_warnings():
        # So much epsilon protects nobody, and the curator says so.
        warnings.simplefilter("ignore")
        return curator_of(case.tables).ask(sql, **terms(case))


def terms(case: Case) -> dict[str, Any]:
    """The options that a case is asked with."""
    spoken = {"dialect": case.dialect} if case.dialect else {}
    return {**PRICE, **spoken, **(case.options or {})}


def table_of(answer: Answer) -> pa.Table:
    """All of an answer is made: its table, its notes, its text and its intervals."""
    assert str(answer) and isinstance(answer.notes, tuple)
    answer.intervals()
    return answer.to_arrow()
