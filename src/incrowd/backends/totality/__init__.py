"""Proof, before a statement runs, that no row can make the engine raise.

An error that depends on a row reveals something about the row, so a statement over private rows must contain
nothing that can raise. The authors of statements are not trusted with this. The final statement, in the
engine's own constructs and with the queries that read its tables, is walked as a tree, and a statement that
is not proven is refused before the engine sees it. The text that the engine runs is written from that tree
(`trees.text_of`) and has the same meaning.

Theorem. If `Prover.prove` accepts a statement, then every expression of it has a value, or NULL, on every row
that tables of the declared types can hold.

Proof, by abstract interpretation. Each expression gets a `Value`: a type and a range that hold for it on
every row. For a column they follow from its type, for a constant from reading it, and for all other
expressions from a rule for the construct (`arithmetic`, `cast_rules`, `strings`, `moments`, `constructs`)
that refuses operands on which the engine raises. Tests of CASE narrow the ranges of the expressions that they
compare (`guards`). The only assumption about rows is that there are at most 2^41 of them. Nothing is
concluded from WHERE, ON, AND or the order of evaluation, so the proof holds however the optimizer moves
expressions. A constant expression is an expression like any other, so one that raises when it is folded is
refused as well.

Conditions: the engine computes what its rule says (the tests try this against the engines), reads its own
storage without raising, and does not run out of memory, disk or time.

>>> from sqlglot import parse_one
>>> prover = Prover("duckdb", {"t": {"x": "BIGINT", "f": "DOUBLE"}})
>>> inside = "f <= CAST('9.0' AS DOUBLE) AND f > CAST('0.0' AS DOUBLE)"
>>> guarded = f"SELECT SUM(CASE WHEN {inside} THEN CAST(FLOOR(f) AS BIGINT) END) AS s FROM t"
>>> prover.prove(parse_one(guarded, read="duckdb"))
>>> prover.prove(parse_one("SELECT CAST(f AS BIGINT) AS y FROM t", read="duckdb"))  # doctest: +ELLIPSIS
Traceback (most recent call last):
...
incrowd.errors.BackendError: CAST(f AS BIGINT) is not known to be safe on every row (it may leave 64 bits)...
"""

from incrowd.backends.totality.proof import PIECE, Prover

__all__ = ["PIECE", "Prover"]
