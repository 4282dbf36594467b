"""Translates a statement into the dialect of another engine.

Statements are written in DuckDB's dialect, with constructs whose meaning the planner fixes: arithmetic of
float64 and of 64-bit integers, NULL-aware comparisons, text by code points, dates in the years 1 to 9999. A
dialect says how its engine writes each construct. Translation fails closed: a construct is refused unless it
is known to mean the same everywhere or the dialect rewrites it. A statement that meant something else on
another engine would bound nothing.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from incrowd.backends.trees import text_of
from incrowd.errors import BackendError
from incrowd.query.typed import fold

Rewrite = Callable[[exp.Expr], exp.Expr]

SAME: frozenset[type[exp.Expr]] = frozenset(
    {
        # clauses
        exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.With, exp.CTE, exp.Union,
        exp.Intersect, exp.Except,
        exp.Subquery, exp.Table, exp.TableAlias, exp.Alias, exp.Values, exp.Tuple, exp.Distinct, exp.Column,
        exp.Identifier, exp.Star,
        # constants and types
        exp.Literal, exp.Null, exp.Boolean, exp.DataType, exp.Cast, exp.Var, exp.Interval,
        # truth
        exp.And, exp.Or, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In,
        exp.Between, exp.Like, exp.Escape, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Case, exp.If, exp.Coalesce,
        exp.Nullif,
        # numbers
        exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Sqrt, exp.Ln, exp.Exp, exp.Least,
        exp.Greatest, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseRightShift,
        # aggregates
        exp.Count, exp.Min, exp.Max,
        # windows, whose orders and frames are written out
        exp.Order, exp.Ordered, exp.WindowSpec, exp.Rank, exp.DenseRank, exp.Ntile, exp.Lag, exp.Lead,
        exp.FirstValue, exp.LastValue, exp.NthValue,
        # text, by code points
        exp.Length, exp.Substring, exp.Left, exp.Right, exp.DPipe, exp.Replace,
    }
)  # fmt: skip
"""Constructs that mean the same on every engine. A dialect must rewrite all others."""


@dataclass(frozen=True)
class Dialect:
    """How an engine writes the constructs that differ from DuckDB's."""

    name: str
    """The engine's name in sqlglot."""
    rewrites: Mapping[type[exp.Expr], Rewrite]
    """For each construct, a function that rewrites it; the parts of its argument are already rewritten."""
    longest_name: int | None = None
    """The number of bytes after which the engine cuts off a name; None if it does not."""


def translate(
    statement: exp.Query,
    dialect: Dialect,
    tables: Mapping[str, exp.Query],
    once: Collection[str] = frozenset(),
) -> exp.Query:
    """The statement in an engine's dialect. Each table, by its folded name, becomes the query that reads it.

    Names are folded, as DuckDB compares them, so engines that do not fold see one spelling only. Rows of the
    tables in `once` are materialized and not read a second time.
    """
    tree = statement.copy()
    if once and any(fold(table.name) in once for table in tree.find_all(exp.Table)):
        keep_rows(tree)
    ctes = {fold(cte.alias) for cte in tree.find_all(exp.CTE)}
    walked = _walked(tree, dialect, tables, ctes)
    if dialect.longest_name is not None:
        for identifier in walked.find_all(exp.Identifier):
            identifier.set("this", short_name(identifier.name, dialect.longest_name))
    assert isinstance(walked, exp.Query)
    return walked


def short_name(name: str, most: int) -> str:
    """The name, shortened to at most `most` bytes. Different names stay different.

    >>> short_name("age", 63), len(short_name("ä" * 40, 63).encode())
    ('age', 63)
    """
    whole = name.encode()
    if len(whole) <= most:
        return name
    mark = hashlib.sha256(whole).hexdigest()[:32]
    return f"{whole[: most - 33].decode(errors='ignore')}_{mark}"


def keep_rows(tree: exp.Expr) -> None:
    """Make the engine compute every common table expression only once.

    A unit's weight and its rows are two readings of one table. If the readings may differ, as for a view that
    draws a sample, the weight bounds nothing.
    """
    for cte in tree.find_all(exp.CTE):
        # Mark all of them: without a hint, the engine decides which to materialize.
        cte.set("materialized", True)


def rewritten(tree: exp.Expr, dialect: Dialect) -> exp.Expr:
    """An expression over columns, in the engine's constructs."""
    return _walked(tree.copy(), dialect, {}, set())


def _walked(tree: exp.Expr, dialect: Dialect, tables: Mapping[str, exp.Query], ctes: set[str]) -> exp.Expr:
    """Rewrite from the leaves up, so that each rewrite gets rewritten parts."""
    for node in reversed(list(tree.walk())):
        replaced = _replaced(node, dialect, tables, ctes)
        if replaced is node:
            continue
        if node is tree:
            tree = replaced
        else:
            node.replace(replaced)
    return tree


def _replaced(node: exp.Expr, dialect: Dialect, tables: Mapping[str, exp.Query], ctes: set[str]) -> exp.Expr:
    if isinstance(node, exp.Identifier):
        node.set("this", fold(node.name))
        node.set("quoted", True)
        return node
    if isinstance(node, exp.Table):
        name = fold(node.name)
        if name in ctes:
            return node
        if name not in tables:
            raise BackendError(f"There is no table {node.name} on this engine.")
        alias = exp.TableAlias(this=exp.to_identifier(fold(node.alias_or_name), quoted=True))
        return exp.Subquery(this=tables[name].copy(), alias=alias)
    rewrite = dialect.rewrites.get(type(node))
    if rewrite is not None:
        return rewrite(node)
    if type(node) not in SAME:
        raise BackendError(
            f"{text_of(node)[:60]} is not known on {dialect.name}; ask without it, or use DuckDB."
        )
    return node


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function that the dialect has and sqlglot's parser may not know."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def bit_count(node: exp.Expr, engine: str) -> exp.Expr:
    """A call by name, which must be BIT_COUNT: sqlglot has no construct for DuckDB's."""
    if str(node.this).upper() != "BIT_COUNT":
        raise BackendError(f"{node.this} is not known on {engine}; ask without it, or use DuckDB.")
    return node


def number(value: int) -> exp.Expr:
    """A small whole number."""
    return exp.Literal.number(str(value))


def case(*pairs: tuple[exp.Expr, exp.Expr], default: exp.Expr | None = None) -> exp.Expr:
    """CASE WHEN ... THEN ... for each pair, in parentheses."""
    ifs = [exp.If(this=test.copy(), true=value.copy()) for test, value in pairs]
    return exp.paren(exp.Case(ifs=ifs, default=None if default is None else default.copy()))


def reads_float(node: exp.Expr) -> bool:
    """True if a TRY_CAST rounds a float; otherwise it reads text that has passed its grammar."""
    inner = node.this
    return isinstance(inner, exp.Cast) and inner.to.this == exp.DataType.Type.DOUBLE


def within_int64(value: exp.Expr) -> exp.Expr:
    """SQL that tests that a float fits into 64 bits. False for NaN, which is above all numbers."""
    ends = [exp.cast(exp.Literal.string(repr(end)), "DOUBLE") for end in (-(2.0**63), 2.0**63)]
    after = exp.GTE(this=value.copy(), expression=ends[0])
    return exp.And(this=after, expression=exp.LT(this=value.copy(), expression=ends[1]))


@functools.cache
def case_table(upper: bool) -> tuple[str, str]:
    """The letters that DuckDB's UPPER (LOWER) changes, and their images, one for one.

    Engines map letters by their own tables or by the server's locale. Here all engines use one table.
    """
    function = "UPPER" if upper else "LOWER"
    letters = [chr(code) for code in range(128, 0x1E944) if not 0xD800 <= code < 0xE000]
    with duckdb.connect() as engine:  # the module's own connection is the user's, who may be reading from it
        pairs = engine.execute(
            f"SELECT c, {function}(c) AS d FROM (SELECT UNNEST(?) AS c) WHERE c <> d AND LENGTH(d) = 1",
            [letters],
        ).fetchall()
    return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs)


def cased(node: exp.Expr) -> exp.Expr:
    """UPPER or LOWER: the engine's own for plain ASCII, where all agree; otherwise the shared table."""
    upper = isinstance(node, exp.Upper)
    text = node.this
    native = call("UPPER" if upper else "LOWER", text)
    ascii_only = exp.EQ(this=call("OCTET_LENGTH", text), expression=call("LENGTH", text))
    table = (exp.Literal.string(letters) for letters in case_table(upper))
    return case((ascii_only, native), default=call("TRANSLATE", native, *table))
