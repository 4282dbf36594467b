"""Proof, before a statement runs, that no row can make the engine raise.

An error that depends on a row tells of it, so a statement over private rows may hold nothing that can raise.
That is not left to whoever writes statements: the tree of the final statement, in the engine's own constructs
and with the queries that read its tables, is walked, and what is not proven is refused before the engine sees
it. The text that the engine runs is written from that tree (`trees.text_of`) and reads as it does.

Theorem. If `Prover.prove` accepts a statement, then every expression of it has a value, or NULL, on every row
that tables of the declared types can hold.

Proof, by abstract interpretation. Each expression gets a `Value`, a type and a range that hold of it on every
row: of columns by their type, of constants by reading them, of all else by a rule for its construct
(`arithmetic`, `cast_rules`, `strings`, `moments`, `constructs`) that refuses operands on which the engine
raises. Tests of CASE narrow the ranges of what they compare (`guards`). Nothing else is assumed of rows than
that there are at most 2^41 of them: nothing is concluded from WHERE, ON, AND or the order of evaluation, so
the proof stands however the optimizer moves expressions. A constant expression is an expression like any
other, so what raises when it is folded is refused as well.

Conditions: the engine computes what its rule says (tried against the engines by the tests), reads its own
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
