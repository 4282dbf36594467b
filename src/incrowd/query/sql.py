"""SQL text to a syntax tree: the one module that knows the parser's ways.

The parser (sqlglot, one pinned version) does not know GoogleSQL's differential-privacy clause and drops or
refuses its named arguments, so both are taken out of the token stream first: `WITH DIFFERENTIAL_PRIVACY
OPTIONS(...)` becomes `Question.options`, and the named argument of an aggregate is kept beside its node
(`bounds_of`). Nothing is dropped in silence: what is not understood is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from incrowd.catalog.names import fold
from incrowd.errors import QueryError

Per = Literal["group", "row"]
DIALECT = "duckdb"
_BOUNDS = "contribution_bounds"
_PREFIX = "__named__"
_OPTIONS = {"epsilon", "delta", "max_groups_contributed", "max_rows_contributed"}
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


def parse(sql: str) -> Question:
    """The tree and the options of one SELECT.

    >>> q = parse("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7) COUNT(*) FROM t")
    >>> q.tree.sql(), dict(q.options)
    ('SELECT COUNT(*) FROM t', {'epsilon': 1.0, 'delta': 1e-07})
    """
    if not isinstance(sql, str) or not sql.strip():
        raise QueryError("The question is empty; write a SELECT, such as SELECT COUNT(*) FROM people.")
    if "\x00" in sql:
        raise QueryError("The question holds a NUL character; leave it out.")
    if any("\ud800" <= each <= "\udfff" for each in sql):
        raise QueryError("The question holds half a character (a lone surrogate); leave it out.")
    text, options = _take_clause(sql)
    try:
        statements = [each for each in sqlglot.parse(text, read=DIALECT) if each is not None]
    except SqlglotError as error:
        raise QueryError(f"The SQL cannot be read: {_first_line(error)}") from None
    except RecursionError:
        raise QueryError("The SQL is nested too deeply to be read; write it in smaller steps.") from None
    if len(statements) != 1:
        raise QueryError("Ask one question at a time: several statements were given.")
    tree = statements[0]
    while isinstance(tree, exp.Subquery) and not any(
        value for key, value in tree.args.items() if key != "this"
    ):
        tree = tree.this
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Subquery | exp.Table):
        raise QueryError("Only SELECT can be asked; the curator neither changes nor describes tables.")
    for node in tree.walk():
        # Comments are no part of the question: they must neither tell equal expressions apart nor travel.
        node.pop_comments()
    expected = text.count(_PREFIX)
    named = tree.transform(_name_arguments)
    assert isinstance(named, exp.Query)
    if count_bounds(named) != expected:
        raise QueryError("An aggregate's named arguments could not be read; use name => (low, high).")
    return Question(named, options)


def _first_line(error: Exception) -> str:
    line = str(error).splitlines()[0].replace("\x1b[4m", "").replace("\x1b[0m", "").strip()
    return line if line.endswith(".") else line + "."


def _take_clause(sql: str) -> tuple[str, dict[str, float]]:
    """The text without the clause and with marked functions, and the clause's options."""
    try:
        tokens = sqlglot.tokenize(sql, read=DIALECT)
    except SqlglotError as error:
        raise QueryError(f"The SQL cannot be read: {_first_line(error)}") from None
    edits: list[tuple[int, int, str]] = []
    options: dict[str, float] = {}
    for index, token in enumerate(tokens):
        word = fold(token.text)
        after_with = index >= 1 and fold(tokens[index - 1].text) == "with"
        if word == "differential_privacy" and index >= 2 and after_with:
            if any(text == "" for *_, text in edits):
                raise QueryError("The DIFFERENTIAL_PRIVACY clause may be given once, in one SELECT.")
            end = index
            if index + 1 < len(tokens) and fold(tokens[index + 1].text) == "options":
                end, options = _read_options(tokens, index + 2)
            edits.append((tokens[index - 1].start, tokens[end].end + 1, ""))
        elif word == "anonymization" and after_with:
            raise QueryError("WITH ANONYMIZATION is not understood; write WITH DIFFERENTIAL_PRIVACY.")
        elif token.text.startswith(_PREFIX):
            raise QueryError(f"Names that start with {_PREFIX} are reserved; rename it.")
        elif token.token_type == TokenType.L_PAREN and index and _has_named(tokens, index):
            edits.append((tokens[index - 1].start, tokens[index - 1].start, _PREFIX))
    text = sql
    for start, end, insert in sorted(edits, reverse=True):
        text = text[:start] + insert + text[end:]
    return text, options


def _has_named(tokens: list[Token], opening: int) -> bool:
    """Whether the parenthesis at `opening` has a named argument at its own level."""
    depth = 0
    for token in tokens[opening:]:
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
            depth += 1
        elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
            depth -= 1
            if depth == 0:
                return False
        elif token.token_type == TokenType.FARROW and depth == 1:
            return True
    return False


def _read_options(tokens: list[Token], opening: int) -> tuple[int, dict[str, float]]:
    options: dict[str, float] = {}
    position = opening + 1
    if opening >= len(tokens) or tokens[opening].token_type != TokenType.L_PAREN:
        raise QueryError("OPTIONS needs a list in parentheses, such as OPTIONS(epsilon=1, delta=1e-7).")
    while position + 2 < len(tokens):
        name, sign, value = tokens[position : position + 3]
        key = fold(name.text)
        if key == "privacy_unit_column":
            raise QueryError("The owner alone sets the protected unit; leave privacy_unit_column out.")
        if key not in _OPTIONS:
            raise QueryError(f"The option {name.text} is not known; use {', '.join(sorted(_OPTIONS))}.")
        if key in options:
            raise QueryError(f"The option {key} is given twice.")
        if sign.token_type != TokenType.EQ or value.token_type != TokenType.NUMBER:
            raise QueryError(f"The option {key} needs a number, as in {key}=1.")
        options[key] = float(value.text)
        after = tokens[position + 3] if position + 3 < len(tokens) else None
        if after is not None and after.token_type == TokenType.R_PAREN:
            return position + 3, options
        if after is None or after.token_type != TokenType.COMMA:
            break
        position += 4
    raise QueryError("OPTIONS needs a list such as OPTIONS(epsilon=1, delta=1e-7).")


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
