"""Rules for text. Its functions raise only on very long texts, negative lengths and bad patterns."""

from __future__ import annotations

from sqlglot import exp

from incrowd.backends.totality.arithmetic import counted_bits
from incrowd.backends.totality.forms import is_text, part_of
from incrowd.backends.totality.values import LONGEST, Kind, Value, boolean, integer, text, time
from incrowd.backends.totality.walk import Environment, NotTotalError, Rule, Walk, parts_of
from incrowd.query.grammar import GRAMMARS
from incrowd.query.pattern_reading import is_known
from incrowd.query.wildcards import ESCAPE, is_respelled

LONGEST_JOINED = 1_000_000
LONGEST_MATCHED = 1_000
_PATTERNS = frozenset(
    shape.format(pattern)
    # The last two match decimals that are whole, and whole numbers without leading zeros.
    for pattern in (*GRAMMARS.values(), "-?[0-9]+([.]0*)?", "0|-?[1-9][0-9]*")
    for shape in ("{}", "^({})$", r"\A(?:{})\z")
)


def _any_text(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    value = walk.value(node, known)
    if not is_text(value):
        raise NotTotalError(node, "it is no text")
    return value


def _text(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """A text that is short enough for functions of text."""
    value = _any_text(walk, node, known)
    if value.high > walk.engine.longest:
        raise NotTotalError(node, "the text may be too long")
    return value


def _same_length(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """LOWER and UPPER. Some letters become two or three, but not on PostgreSQL, where the collation is C."""
    parts_of(node, "this")
    high = _text(walk, node.this, known).high
    return text(high if walk.engine.name == "postgres" else min(3 * high, LONGEST))


def _trimmed(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    _constant(node.expression)
    return _text(walk, node.this, known).but(form="")


def _constant(node: exp.Expr | None) -> str:
    if isinstance(node, exp.Collate):
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise NotTotalError(node or exp.null(), "it is no constant text")
    return node.name


def _length(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    longest = min(_any_text(walk, node.this, known).high, 2**31 - 1)
    return integer(64 if walk.engine.name == "duckdb" else 32, 0, longest)


def _place(node: exp.Expr | None, least: int) -> int:
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        raise NotTotalError(node or exp.null(), "it is no constant place")
    place = int(node.name)
    if not least <= place < 2**31:
        raise NotTotalError(node, "the place is out of range")
    return place


def _substring(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "start", "length")
    value = _text(walk, node.this, known)
    start = _place(node.args["start"], 1)
    if node.args.get("length") is None:
        return value.but(form="")
    length = _place(node.args["length"], 0)
    return text(min(length, value.high), part_of(value, start, length))


def _end(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """LEFT and RIGHT."""
    parts_of(node, "this", "expression")
    read = _any_text if isinstance(node, exp.Left) else _text
    value, length = read(walk, node.this, known), _place(node.expression, 0)
    form = part_of(value, 1, length) if isinstance(node, exp.Left) else ""
    return text(min(length, value.high), form)


def _joined(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression", "safe")
    long = _text(walk, node.this, known).high + _text(walk, node.expression, known).high
    if long > LONGEST_JOINED:
        raise NotTotalError(node, "the text may become too long")
    return text(long)


def _replaced(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression", "replacement")
    old, new = _constant(node.expression), _constant(node.args["replacement"])
    if not old or len(new) > len(old):
        raise NotTotalError(node, "the text may become longer")
    return _text(walk, node.this, known).but(form="")


def _searched(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """CONTAINS and STARTS_WITH."""
    parts_of(node, "this", "expression")
    _text(walk, node.this, known)
    _text(walk, node.expression, known)
    return boolean()


def _position(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "substr")
    _text(walk, node.this, known)
    _text(walk, node.args["substr"], known)
    return integer(64 if walk.engine.name == "duckdb" else 32, 0, 2**31 - 1)


def _split(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """SPLIT_PART at a constant place; the divider has letters, of which engines without any disagree."""
    parts_of(node, "this", "delimiter", "part_index")
    if not _constant(node.args["delimiter"]):
        raise NotTotalError(node, "the divider is empty")
    _place(node.args["part_index"], 1)
    value = _text(walk, node.this, known)
    if value.high > LONGEST_JOINED:
        raise NotTotalError(node, "the text may have too many parts")
    return value.but(form="")


def _like(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """LIKE with a pattern of constants without a backslash, which engines read as an escape."""
    parts_of(node, "this", "expression")
    _text(walk, node.this, known)
    _text(walk, node.expression, known)
    constants = list(node.expression.find_all(exp.Literal))
    if node.expression.find(exp.Column) or any(
        literal.is_string and "\\" in literal.name for literal in constants
    ):
        raise NotTotalError(node, "the pattern is not known")
    return boolean()


def _escaped(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """LIKE with ESCAPE '!', which stands before %, _ and itself alone: then a backslash is a letter."""
    parts_of(node, "this", "expression")
    like = node.this
    if type(like) is not exp.Like or _constant(node.expression) != ESCAPE:
        raise NotTotalError(node)
    parts_of(like, "this", "expression")
    _text(walk, like.this, known)
    _text(walk, like.expression, known)
    constants = list(like.expression.find_all(exp.Literal))
    if like.expression.find(exp.Column) or not all(is_respelled(literal.name) for literal in constants):
        raise NotTotalError(node, "the pattern is not known")
    return boolean()


def _matched(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """A known pattern, or one that was read and written again, over a short text. Engines raise on patterns
    over hundreds of millions of letters.
    """
    parts_of(node, "this", "expression")
    pattern = _constant(node.expression)
    read = type(node) is exp.RegexpLike and is_known(pattern, walk.engine.name)
    if pattern not in _PATTERNS and not read:
        raise NotTotalError(node, "the pattern is not known")
    if _text(walk, node.this, known).high > LONGEST_MATCHED:
        raise NotTotalError(node, "the text may be too long")
    return boolean()


def _translated(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "from_", "to")
    old, new = _constant(node.args["from_"]), _constant(node.args["to"])
    if len(new) > len(old):
        raise NotTotalError(node, "the tables differ")
    return _text(walk, node.this, known).but(form="")


def _collated(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    name = node.expression.name
    if name.lower() not in ("c", "binary", "utf8_binary"):
        raise NotTotalError(node, "the collation is not known")
    return _any_text(walk, node.this, known)


def _called(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """Functions for which the parser has no construct."""
    name, arguments = str(node.this).upper(), node.expressions
    if name == "BIT_COUNT" and len(arguments) == 1:
        return counted_bits(walk, node, known)
    if name == "OCTET_LENGTH" and len(arguments) == 1:
        _any_text(walk, arguments[0], known)
        return integer(32, 0, 2**31 - 1)
    if name == "BTRIM" and len(arguments) == 2:
        _constant(arguments[1])
        return _text(walk, arguments[0], known).but(form="")
    if walk.engine.name == "postgres" and name == "TRIM_SCALE" and len(arguments) == 1:
        value = walk.value(arguments[0], known)
        if value.kind is not Kind.NUMERIC:
            raise NotTotalError(node, "it is no decimal")
        return value
    if walk.engine.name == "spark" and name == "TIMESTAMP_MICROS" and len(arguments) == 1:
        value = walk.value(arguments[0], known)
        if value.kind is not Kind.INTEGER:
            raise NotTotalError(node, "it is no number of microseconds")
        return time(Kind.TIMESTAMP)
    if walk.engine.name == "spark" and name == "PMOD" and len(arguments) == 2:
        value, by = (walk.value(argument, known) for argument in arguments)
        if value.kind is not Kind.INTEGER or by.kind is not Kind.INTEGER or by.low < 1 or by.low != by.high:
            raise NotTotalError(node, "its divisor is no constant")
        return integer(max(value.bits, by.bits), 0, by.high - 1)
    if walk.engine.name == "spark" and name == "TRY_VALIDATE_UTF8" and len(arguments) == 1:
        return _text(walk, arguments[0], known)
    if walk.engine.name == "spark" and name == "COLLATE" and len(arguments) == 2:
        if _constant(arguments[1]) != "UTF8_BINARY":
            raise NotTotalError(node, "the collation is not known")
        value = walk.value(arguments[0], known)
        if value.kind is not Kind.TEXT:
            raise NotTotalError(node, "it is no text")
        return value
    raise NotTotalError(node)


STRINGS: dict[type[exp.Expr], Rule] = {
    exp.Lower: _same_length,
    exp.Upper: _same_length,
    exp.Trim: _trimmed,
    exp.Length: _length,
    exp.Substring: _substring,
    exp.Left: _end,
    exp.Right: _end,
    exp.DPipe: _joined,
    exp.Replace: _replaced,
    exp.Contains: _searched,
    exp.StartsWith: _searched,
    exp.StrPosition: _position,
    exp.SplitPart: _split,
    exp.Like: _like,
    exp.Escape: _escaped,
    exp.RegexpFullMatch: _matched,
    exp.RegexpLike: _matched,
    exp.Collate: _collated,
}
POSTGRES_STRINGS: dict[type[exp.Expr], Rule] = {
    exp.Translate: _translated,
    exp.Anonymous: _called,
}
SPARK_STRINGS: dict[type[exp.Expr], Rule] = {
    exp.Translate: _translated,
    exp.Anonymous: _called,
}
