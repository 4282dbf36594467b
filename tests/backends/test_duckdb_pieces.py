"""A piece of a table is read as declared, whatever the other pieces hold."""

from __future__ import annotations

import duckdb
import pytest

from incrowd.backends.duckdb_pieces import Piece, described, piece_select
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import CatalogError

CATALOG: Catalog = check(
    {
        "sources": {"s": {"frame": "s"}},
        "tables": {
            "people": {"unit": "Id", "columns": {"Id": {"type": "integer"}, "cost": {"type": "float"}}},
            "regions": {"private": False, "columns": {"name": {"type": "text"}}},
        },
        "budget": {"epsilon": 1.0},
    }
)


def rows(
    table: str, piece: Piece, everywhere: tuple[str, ...] = ()
) -> tuple[list[str], list[tuple[object, ...]]]:
    """The columns and rows of a piece."""
    asked = duckdb.execute(piece_select(CATALOG, table, piece, everywhere).sql("duckdb"))
    return [column[0] for column in asked.description or ()], asked.fetchall()


def test_columns_are_named_as_they_are_declared_and_typed_as_they_are_declared() -> None:
    types = {"ID": "SMALLINT", "COST": "VARCHAR", "secret": "VARCHAR"}
    piece = Piece("(SELECT 7::SMALLINT AS ID, '1.5' AS COST, 'x' AS secret)", types)
    assert rows("people", piece) == (["Id", "cost"], [(7, 1.5)])


def test_undeclared_columns_of_a_public_table_keep_their_names() -> None:
    piece = Piece(
        "(SELECT 'x' AS NAME, 3 AS Size, [1] AS parts)",
        {"NAME": "VARCHAR", "Size": "INTEGER", "parts": "INTEGER[]"},
    )
    assert rows("regions", piece) == (["name", "Size"], [("x", 3)])


def test_a_column_of_other_pieces_is_null_here_and_one_of_none_is_refused() -> None:
    piece = Piece("(SELECT 7 AS id)", {"id": "INTEGER"})
    assert rows("people", piece, ("id", "cost")) == (["Id", "cost"], [(7, None)])
    with pytest.raises(CatalogError) as caught:
        rows("people", piece)
    assert str(caught.value) == "tables.people.columns.cost: the source has no such column; it has id."


def test_text_of_a_collated_piece_is_compared_by_its_letters() -> None:
    types = {"name": "VARCHAR"}
    for collated in (False, True):
        piece = Piece("(SELECT 'x' COLLATE NOCASE AS name)", types, collated=collated)
        select = piece_select(CATALOG, "regions", piece, ()).sql("duckdb")
        same = duckdb.execute(f"SELECT COUNT(*) FROM ({select}) AS t WHERE name = 'X'").fetchall()
        assert same == [(0 if collated else 1,)]


def test_an_item_of_from_is_described_by_names_and_types() -> None:
    with duckdb.connect() as connection:
        origin = "(SELECT 1::BIGINT AS a, NULL AS b, 'x' AS \"C d\")"
        assert described(connection, origin) == {"a": "BIGINT", "b": '"NULL"', "C d": "VARCHAR"}
