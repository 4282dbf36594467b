"""GoogleSQL's clause: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...), and what its options ask for.

The parser does not know it, so it is taken out of the text, and a marker is left where the SELECT list
begins: a column with a reserved name, by which the SELECT that had the clause is found in the tree. There the
clause stays with its node (`clause_of`), whatever rules do to the tree.

| option | meaning |
|---|---|
| epsilon, delta | what the question pays |
| max_groups_contributed, max_rows_contributed | how much one unit may count for; NULL leaves it open |
| min_privacy_units_per_group | groups are shown whose noisy number of units is at least that |
| privacy_unit_column | must be the unit that the owner declared |
| group_selection_strategy | LAPLACE_THRESHOLD, or PUBLIC_GROUPS: then all groups must be public |

The older clause, WITH ANONYMIZATION, has the same options, with the names kappa and k_threshold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.tokens import closing, listed

MARK = "__clause__"
_META = "clause"
_CLAUSES = ("differential_privacy", "anonymization")
_FIELDS: Mapping[str, str] = {
    "epsilon": "epsilon",
    "delta": "delta",
    "max_groups_contributed": "groups",
    "kappa": "groups",
    "max_rows_contributed": "rows",
    "min_privacy_units_per_group": "least_units",
    "k_threshold": "least_units",
}
_OTHERS = ("privacy_unit_column", "group_selection_strategy")
OPTIONS = (*_FIELDS, *_OTHERS)
_OPEN = ("groups", "rows", "least_units")
_NUMBER = re.compile(r"[+-]?\s*(\d+(_\d+)*\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_LIST = "OPTIONS needs a list such as OPTIONS(epsilon=1, delta=1e-7)."


@dataclass(frozen=True)
class Clause:
    """What one clause asks for; None, or nothing, where it does not say."""

    epsilon: float | None = None
    delta: float | None = None
    groups: float | None = None
    rows: float | None = None
    least_units: float | None = None
    """Groups with fewer units are not shown, as far as noise can tell."""
    unit: tuple[str, ...] = ()
    """The column that is said to be the protected unit, with its table's name before it if that is given."""
    public: bool = False
    """Whether all groups must be public."""

    @property
    def options(self) -> dict[str, float]:
        """The options that are numbers, by the names of the clause."""
        named = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "max_groups_contributed": self.groups,
            "max_rows_contributed": self.rows,
            "min_privacy_units_per_group": self.least_units,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Taken:
    """The clauses of a text in their order, and the edits that take them out of it."""

    clauses: tuple[Clause, ...]
    edits: tuple[tuple[int, int, str], ...]


def clause_of(select: exp.Expr) -> Clause | None:
    """The clause of a SELECT; None if it has none."""
    clause: Clause | None = select.meta.get(_META)
    return clause


def take_clauses(sql: str, tokens: Sequence[Token]) -> Taken:
    """The clauses of a text; each becomes a marked column at the beginning of its SELECT list."""
    clauses: list[Clause] = []
    edits: list[tuple[int, int, str]] = []
    for index, token in enumerate(tokens):
        if token.text.startswith(MARK):
            raise QueryError(f"Names that start with {MARK} are reserved; rename it.")
        opens = index >= 2 and fold(tokens[index - 1].text) == "with"
        if not opens or fold(token.text) not in _CLAUSES or fold(tokens[index - 2].text) != "select":
            if opens and fold(token.text) in _CLAUSES and _is_clause(tokens, index):
                raise QueryError(f"WITH {token.text.upper()} belongs right after SELECT; move it there.")
            continue
        end, clause = index, Clause()
        if index + 1 < len(tokens) and fold(tokens[index + 1].text) == "options":
            end, clause = _read_options(sql, tokens, index + 2)
        edits.append((tokens[index - 1].start, tokens[end].end + 1, ""))
        # DISTINCT and ALL stand before the list.
        first = end + 1
        if first < len(tokens) and fold(tokens[first].text) in ("distinct", "all"):
            first += 1
        if first >= len(tokens):
            raise QueryError(f"The SELECT ends after WITH {token.text.upper()}; write what to select.")
        edits.append((tokens[first].start, tokens[first].start, f"{MARK}{len(clauses)}, "))
        clauses.append(clause)
    return Taken(tuple(clauses), tuple(edits))


def _is_clause(tokens: Sequence[Token], index: int) -> bool:
    """True unless the word is the name of a common table: WITH anonymization AS (...)."""
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return after is not None and fold(after.text) == "options"


def _read_options(sql: str, tokens: Sequence[Token], opening: int) -> tuple[int, Clause]:
    """The place of the bracket that ends the options, and what they say."""
    if opening >= len(tokens) or tokens[opening].token_type != TokenType.L_PAREN:
        raise QueryError("OPTIONS needs a list in parentheses, such as OPTIONS(epsilon=1, delta=1e-7).")
    end = closing(tokens, opening)
    if end is None:
        raise QueryError(_LIST)
    values: dict[str, object] = {}
    given: set[str] = set()
    for part in listed(tokens, opening, end) if end > opening + 1 else ():
        _refuse_unknown(part)
        if len(part) < 3:
            raise QueryError(_LIST)
        key = fold(part[0].text)
        name = _FIELDS.get(key, key)
        if name in given:
            raise QueryError(f"The option {key} is given twice.")
        given.add(name)
        if part[1].token_type != TokenType.EQ:
            example = f"{key}=1" if key in _FIELDS else f"{key}=name"
            raise QueryError(f"The option {key} needs a {_kind(key)}, as in {example}.")
        if key == "privacy_unit_column":
            values["unit"] = _column(part[2:])
        elif key == "group_selection_strategy":
            values["public"] = _strategy(part[2:]) == "public_groups"
        else:
            values[name] = _number(key, name, sql, part[2:])
    return end, Clause(**values)  # type: ignore[arg-type]


def _kind(key: str) -> str:
    return "number" if key in _FIELDS else "name"


def _refuse_unknown(part: Sequence[Token]) -> None:
    name = part[0].text if part else ""
    if fold(name) not in OPTIONS:
        known = ", ".join(sorted(OPTIONS))
        raise QueryError(f"The option {name} is not known; use {known}." if name else _LIST)


def _number(key: str, name: str, sql: str, value: Sequence[Token]) -> float | None:
    """The value of an option that is a number, in any spelling; None for NULL, where that is possible."""
    text = sql[value[0].start : value[-1].end + 1]
    if name in _OPEN and fold(text) == "null":
        return None
    if not _NUMBER.fullmatch(text):
        if any(token.token_type == TokenType.EQ for token in value):
            raise QueryError(_LIST)
        raise QueryError(f"The option {key} needs a number, as in {key}=1.")
    number = float(re.sub(r"[\s_]", "", text))
    if abs(number) == float("inf"):
        raise QueryError(f"The option {key} is too large; write a smaller number.")
    return number


def _column(value: Sequence[Token]) -> tuple[str, ...]:
    """The names of a column, with what stands before its dots; backticks are quotation marks there."""
    plain = [token for token in value if token.text != "`"]
    names, dots = plain[::2], plain[1::2]
    if len(plain) % 2 == 0 or any(dot.token_type != TokenType.DOT for dot in dots):
        raise QueryError("privacy_unit_column needs the name of a column, as in privacy_unit_column=user_id.")
    if any(name.token_type in (TokenType.NUMBER, TokenType.STRING) for name in names):
        raise QueryError("privacy_unit_column needs the name of a column, as in privacy_unit_column=user_id.")
    return tuple(fold(name.text) for name in names)


def _strategy(value: Sequence[Token]) -> str:
    strategy = fold("".join(token.text for token in value))
    if strategy not in ("laplace_threshold", "public_groups"):
        raise QueryError(
            "group_selection_strategy is LAPLACE_THRESHOLD or PUBLIC_GROUPS; leave it out, and the owner's "
            "file decides which groups are public."
        )
    return strategy


def place_clauses(tree: exp.Query, clauses: Sequence[Clause]) -> None:
    """Puts each clause on its SELECT, and takes the markers out of the tree."""
    placed = 0
    for select in list(tree.find_all(exp.Select)):
        first = select.expressions[0] if select.expressions else None
        if isinstance(first, exp.Column) and first.name.startswith(MARK) and not first.table:
            select.meta[_META] = clauses[int(first.name.removeprefix(MARK))]
            select.set("expressions", select.expressions[1:])
            placed += 1
            if not select.expressions:
                raise QueryError("A SELECT names nothing after its clause; write what to select.")
    if placed != len(clauses):
        raise QueryError("The clause WITH DIFFERENTIAL_PRIVACY belongs right after SELECT; move it there.")


def shared(clauses: Sequence[Clause]) -> Clause:
    """The one clause of a question: all numbers that are given must be the same."""
    for other in clauses[1:]:
        if other.options != clauses[0].options:
            raise QueryError(
                "The DIFFERENTIAL_PRIVACY clauses of this question differ; write the same options in each, "
                "or ask each SELECT by itself."
            )
    return clauses[0] if clauses else Clause()
