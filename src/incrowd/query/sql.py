"""SQL text to a syntax tree: the one module that knows the parser's ways.

The parser (sqlglot, one pinned version) does not know GoogleSQL's differential-privacy clause and drops or
refuses its named arguments, so both are taken out of the token stream first: the clause stays with its
SELECT (`clause`), and the named argument of an aggregate with its node (`bounds_of`). Nothing is dropped in
silence: what is not understood is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.anonymization import clamped, newer_names
from incrowd.query.balancing import balanced
from incrowd.query.clause import MARK, Clause, place_clauses, shared, take_clauses
from incrowd.query.dialects import DIALECTS, in_duckdb
from incrowd.query.tokens import CLOSE, OPEN, edited
from incrowd.query.unit_words import UNIT_MARK, quoted_units, with_units

Per = Literal["group", "row"]
DIALECT = "duckdb"
_BOUNDS = "contribution_bounds"
_PREFIX = "__named__"
MOST_NESTED = 60
"""How many brackets may stand inside one another; the parser gives up a little below."""
MOST_LISTED = 20_000
"""How many values one list in brackets may hold; planning takes about 5 seconds for so many."""
MOST_DEEP = 128
"""How many levels the tree of a question may have, once its long chains are balanced (`balancing`)."""
_MARKS = re.compile(rf"{UNIT_MARK}|{_PREFIX}|{MARK}[0-9]+,?")
_OPENINGS = ("select", "with", "from", "table", "values")
_EXAMPLE = "SELECT COUNT(*) FROM people"
_TOO_DEEP = "The SQL is nested too deeply to be read; write it in smaller steps, and lists with IN (...)."
_TOO_LONG = (
    f"A list in the SQL holds more than {MOST_LISTED:,} values; let the owner put them into a public table, "
    "and JOIN that."
)
_PIVOTED = (
    "PIVOT and UNPIVOT work on released numbers only: write SELECT * FROM (SELECT a, COUNT(*) AS n FROM t "
    "GROUP BY a) PIVOT (SUM(n) FOR a IN (0, 1)), or COUNT(*) FILTER (WHERE a = 1) for each column."
)
_NAMED: Mapping[str, Per] = {
    "contribution_bounds_per_group": "group",
    "contribution_bounds_per_row": "row",
}


@dataclass(frozen=True)
class ContributionBounds:
    """The bounds that an analyst writes into an aggregate: of each row's value, or of each unit's total in
    each group.
    """

    per: Per
    low: float
    high: float


def bounds_of(node: exp.Expr) -> ContributionBounds | None:
    """The bounds written into an aggregate; None if there are none."""
    bounds: ContributionBounds | None = node.meta.get(_BOUNDS)
    return bounds


def with_bounds(node: exp.Expr, bounds: ContributionBounds | None) -> exp.Expr:
    """The aggregate with these bounds. They stay with it when a tree is copied or transformed.

    They are no argument of the node: the parser's own writer would print it as one more argument.
    """
    if bounds is not None:
        node.meta[_BOUNDS] = bounds
    return node


def count_bounds(tree: exp.Expr) -> int:
    """How many aggregates of a tree have bounds."""
    return sum(1 for node in tree.walk() if bounds_of(node) is not None)


@dataclass(frozen=True)
class Question:
    """What was asked: the tree, and the options of its differential-privacy clause."""

    tree: exp.Query
    options: Mapping[str, float] = field(default_factory=dict)
    clauses: int = 0
    """How many of its SELECTs have the clause."""


def parse(sql: str, dialect: str = DIALECT) -> Question:
    """The tree and the options of one SELECT, which may be written in another dialect.

    >>> q = parse("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7) COUNT(*) FROM t")
    >>> q.tree.sql(), dict(q.options)
    ('SELECT COUNT(*) FROM t', {'epsilon': 1.0, 'delta': 1e-07})
    """
    tokens = _tokens(_as_text(sql), dialect)
    text, clauses, expected = _take_clauses(sql, tokens, dialect)
    tree = _read(text, dialect)
    if dialect != DIALECT:
        tree = _read(in_duckdb(tree, dialect, (MARK, _PREFIX)))
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Subquery | exp.Table):
        raise QueryError("Only SELECT can be asked; the curator changes no table.")
    tree = balanced(with_units(tree))
    _refuse_shapes(tree)
    for node in tree.walk():
        # Comments are no part of the question: they must neither tell equal expressions apart nor travel.
        node.pop_comments()
    place_clauses(tree, clauses)
    named = tree.transform(_name_arguments)
    assert isinstance(named, exp.Query)
    if count_bounds(named) != expected:
        raise QueryError("An aggregate's named arguments could not be read; use name => (low, high).")
    return Question(named, shared(clauses).options, len(clauses))


def _as_text(sql: object) -> str:
    """The question itself; QueryError unless it is text that a parser can read."""
    if isinstance(sql, bytes | bytearray):
        raise QueryError("The question is bytes; make it text first, such as sql.decode().")
    if not isinstance(sql, str):
        raise QueryError(f"The question must be SQL as text, such as {_EXAMPLE}, not {_kind(sql)}.")
    if "\x00" in sql:
        raise QueryError("The question holds a NUL character; leave it out.")
    if any("\ud800" <= letter <= "\udfff" for letter in sql):
        raise QueryError("The question holds half a character (a lone surrogate); leave it out.")
    return sql


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _tokens(sql: str, dialect: str = DIALECT) -> list[Token]:
    """The tokens of one statement, without semicolons around it."""
    try:
        tokens = sqlglot.tokenize(sql, read=dialect)
    except SqlglotError:
        raise QueryError(
            "The SQL cannot be read: a quotation mark or a comment in it is not closed; close it."
        ) from None
    places = [place for place, token in enumerate(tokens) if token.token_type != TokenType.SEMICOLON]
    if not places:
        raise QueryError(f"The question is empty; write a SELECT, such as {_EXAMPLE}.")
    if places[-1] - places[0] >= len(places):
        raise QueryError(
            "Ask one question at a time: several statements were given; ask each by itself, without "
            "semicolons between them."
        )
    statement = tokens[places[0] : places[-1] + 1]
    _refuse_nesting(statement)
    first = fold(statement[0].text)
    if first in ("pivot", "unpivot"):
        raise QueryError(_PIVOTED)
    if first not in _OPENINGS and statement[0].token_type != TokenType.L_PAREN:
        raise QueryError(
            f"Only SELECT can be asked, and this SQL begins with {statement[0].text}; the curator changes no "
            "table, and describes them with SHOW TABLES, DESCRIBE t and SUMMARIZE t."
        )
    return statement


def _refuse_nesting(tokens: list[Token]) -> None:
    """Refuse brackets and lists beyond what can be read and planned, before that is tried: it takes long."""
    commas = [0]
    """The number of commas so far in each bracket that is open."""
    for token in tokens:
        if token.token_type in OPEN:
            commas.append(0)
        elif token.token_type in CLOSE:
            if len(commas) > 1:
                commas.pop()
        elif token.token_type == TokenType.COMMA:
            commas[-1] += 1
        if len(commas) > MOST_NESTED + 1:
            raise QueryError(_TOO_DEEP)
        if commas[-1] >= MOST_LISTED:
            raise QueryError(_TOO_LONG)


def _read(text: str, dialect: str = DIALECT) -> exp.Expr:
    """The tree of one statement; QueryError where there is none."""
    try:
        (tree,) = sqlglot.parse(text, read=dialect)
    except ParseError as error:
        raise QueryError(_fault(error, dialect)) from None
    except (SqlglotError, ValueError):
        raise QueryError(_unread(dialect)) from None
    except RecursionError:
        raise QueryError(_TOO_DEEP) from None
    while isinstance(tree, exp.Subquery) and not any(
        value for key, value in tree.args.items() if key != "this"
    ):
        tree = tree.this
    if tree is None:
        raise QueryError(f"The question is empty; write a SELECT, such as {_EXAMPLE}.")
    return tree


def _unread(dialect: str) -> str:
    return f"The SQL cannot be read; see that it is one SELECT in {DIALECTS[dialect]}'s dialect."


def _fault(error: ParseError, dialect: str) -> str:
    """Where the parser stopped, and what it missed if that can be said in the user's words."""
    if not error.errors:
        return _unread(dialect)
    place = error.errors[0]
    missed = str(place["description"])
    reason = "something is missing or misspelled there" if "<" in missed or "/" in missed else missed.lower()
    near = _MARKS.sub("", " ".join(str(place["highlight"]).split()))
    return f"The SQL cannot be read: near {near} (line {place['line']}, column {place['col']}), {reason}."


def _refuse_shapes(tree: exp.Query) -> None:
    """Refuse what no later step has words for: deep trees, PIVOT over rows, parameters without a value."""
    for node, depth in _with_depth(tree):
        if depth > MOST_DEEP:
            raise QueryError(_TOO_DEEP)
        if isinstance(node, exp.Pivot) and isinstance(node.this or node.parent, exp.Table):
            raise QueryError(_PIVOTED)
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise QueryError(
                f"{node.sql(DIALECT)} stands for a value that was not given; write the value itself."
            )


def _with_depth(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    """Every node with its depth; without recursion, however deep they are."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((part, depth + 1) for part in node.iter_expressions())


def _take_clauses(sql: str, tokens: list[Token], dialect: str) -> tuple[str, tuple[Clause, ...], int]:
    """The statement without clauses and with marked functions, the clauses, and the number of marks."""
    if any(token.text.startswith(_PREFIX) for token in tokens):
        raise QueryError(f"Names that start with {_PREFIX} are reserved; rename it.")
    taken = take_clauses(sql, tokens)
    names, clamps = newer_names(tokens), clamped(tokens)
    if names and not taken.clauses:
        (name, *_) = (tokens[place - 1].text for place in names)
        raise QueryError(
            f"{name} needs the clause SELECT WITH ANONYMIZATION OPTIONS(epsilon=1) in front; or write "
            f"{next(iter(names.values()))}, without ANON_."
        )
    marked = {place for place in _with_named(tokens) | set(clamps) if place}
    edits = [*taken.edits, *(edit for clamp in clamps.values() for edit in clamp)]
    for place in marked | set(names):
        function = tokens[place - 1]
        name = names.get(place, sql[function.start : function.end + 1])
        edits.append((function.start, function.end + 1, _PREFIX * (place in marked) + name))
    begin, end = tokens[0].start, tokens[-1].end + 1
    if dialect == DIALECT:
        edits += quoted_units(tokens)
    return edited(sql[:end], edits)[begin:], taken.clauses, len(marked)


def _with_named(tokens: list[Token]) -> set[int]:
    """The places of the parentheses that have a named argument at their own level."""
    named: set[int] = set()
    around: list[int] = []
    for place, token in enumerate(tokens):
        if token.token_type in OPEN:
            around.append(place)
        elif token.token_type in CLOSE and around:
            around.pop()
        elif token.token_type == TokenType.FARROW and around:
            named.add(around[-1])
    return {place for place in named if tokens[place].token_type == TokenType.L_PAREN}


def _name_arguments(node: exp.Expr) -> exp.Expr:
    """A marked function as the function it was, with its bounds."""
    if not isinstance(node, exp.Anonymous) or not fold(str(node.this)).startswith(_PREFIX):
        return node
    name = str(node.this)[len(_PREFIX) :]
    plain = [argument for argument in node.expressions if not isinstance(argument, exp.Kwarg)]
    named: dict[str, ContributionBounds] = {}
    for argument in node.expressions:
        if isinstance(argument, exp.Kwarg):
            key = fold(argument.this.name)
            if key not in _NAMED:
                raise QueryError(
                    f"The argument {key} of {name.upper()} is not known; use {' or '.join(sorted(_NAMED))}."
                )
            named[key] = ContributionBounds(_NAMED[key], *_pair(name, key, argument.expression))
    if len(named) != 1:
        raise QueryError(f"Give {name.upper()} one kind of contribution bounds, per group or per row.")
    try:
        call = exp.func(name, *plain, dialect=DIALECT)
    except (SqlglotError, ValueError):
        raise QueryError(f"{name.upper()} does not take these arguments.") from None
    return with_bounds(call, next(iter(named.values())))


def _pair(function: str, key: str, node: exp.Expr) -> tuple[float, float]:
    values = node.expressions if isinstance(node, exp.Tuple) else []
    numbers = [number(value) for value in values]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None or numbers[0] > numbers[1]:
        raise QueryError(f"{key} of {function.upper()} needs two numbers, low and high, as in (0, 100).")
    return numbers[0], numbers[1]


def number(node: exp.Expr) -> float | None:
    """The value of a numeric literal, signed or not; None for anything else."""
    if isinstance(node, exp.Neg):
        inner = number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren):
        return number(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        value = float(node.this)
        return value if abs(value) < float("inf") else None
    return None


def from_items(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT reads: the tables and sub-queries of FROM and of its joins.

    >>> [item.alias_or_name for item in from_items(exp.select("*").from_("a").join("b", on="a.x = b.x"))]
    ['a', 'b']
    """
    start = select.args.get("from_")
    joins = select.args.get("joins") or []
    return ([start.this] if start is not None else []) + [join.this for join in joins]
