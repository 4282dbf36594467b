"""Checks that no row can make an expression fail that PostgreSQL itself evaluates, in a view or a policy.

An error that depends on a row is a leak, and so is a choice of rows by their physical place. The server keeps
views, row-level security and generated columns as trees (`pg_node_tree`) that name each function by its
number. This module reads those trees and refuses every construct that is not on a list of total constructs.
Allowed are columns, filters, joins, UNION ALL, CASE, COALESCE, comparisons of built-in types, casts that only
widen, constants, arrays that stay small, and TABLESAMPLE BERNOULLI. Whether a view keeps each row with one
unit is not checked here: the owner declares that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

NOTHING = "<>"
Check = Callable[["Node"], str | None]
_TOKEN = re.compile(r"(?:\\.|[^\s(){}\\])+|[(){}]", re.DOTALL)
_BERNOULLI = "3313"
_TEXTS = ("25", "1043")
_TABLE_OID = "-6"
_PLAIN = frozenset(
    [
        "ALIAS",
        "FROMEXPR",
        "JOINEXPR",
        "RANGETBLREF",
        "TARGETENTRY",
        "RTEPERMISSIONINFO",
        "CONST",
        "BOOLEXPR",
        "RELABELTYPE",
        "CASEEXPR",
        "CASEWHEN",
        "CASETESTEXPR",
        "COALESCEEXPR",
        "NULLTEST",
        "BOOLEANTEST",
        "COLLATEEXPR",
        "SQLVALUEFUNCTION",
        "CASE",
        "WHEN",
        "COALESCE",
        "COLLATE",
    ]
)
_CALLS = {
    "FUNCEXPR": "funcid",
    "OPEXPR": "opfuncid",
    "DISTINCTEXPR": "opfuncid",
    "NULLIFEXPR": "opfuncid",
    "SCALARARRAYOPEXPR": "opfuncid",
}
_RESULTS = {
    "VAR": "vartype",
    "CONST": "consttype",
    "FUNCEXPR": "funcresulttype",
    "OPEXPR": "opresulttype",
    "RELABELTYPE": "resulttype",
    "COERCEVIAIO": "resulttype",
    "CASEEXPR": "casetype",
    "CASE": "casetype",
    "COALESCEEXPR": "coalescetype",
    "COALESCE": "coalescetype",
    "SQLVALUEFUNCTION": "type",
}
"""The field that holds the type of a node, by the node's label."""
_MUST_BE_FALSE = [
    "hasAggs",
    "hasWindowFuncs",
    "hasTargetSRFs",
    "hasSubLinks",
    "hasDistinctOn",
    "hasRecursive",
    "hasModifyingCTE",
    "hasForUpdate",
]
_MUST_BE_EMPTY = [
    "groupClause",
    "groupingSets",
    "havingQual",
    "windowClause",
    "distinctClause",
    "sortClause",
    "limitOffset",
    "limitCount",
    "rowMarks",
]
_ENTRIES = ("RANGETBLENTRY", "RTE")
_KINDS = {"0", "1", "2", "5", "6", "8"}
"""Tables, sub-queries, joins, VALUES, names of WITH, and no table at all. Functions are not allowed."""


@dataclass(frozen=True)
class Node:
    """A node of a tree: its label and its fields, each a list of words and nodes."""

    label: str
    fields: dict[str, list[object]] = field(default_factory=dict)

    def word(self, name: str) -> str | None:
        """The value of a field that is one word; None if the field is absent or anything else."""
        value = self.fields.get(name, [])
        return value[0] if len(value) == 1 and isinstance(value[0], str) else None

    def walk(self) -> Iterator[Node]:
        """The node and all below it."""
        yield self
        for value in self.fields.values():
            for node in _nodes(value):
                yield from node.walk()


@dataclass(frozen=True)
class Functions:
    """Facts about the server's functions and types, by their numbers."""

    total: Collection[str]
    """Functions that raise on no value."""
    immutable: Collection[str]
    """PostgreSQL's own functions that always return the same result for the same arguments. If all arguments
    are constants, the planner computes the result before it reads a row.
    """
    names: Mapping[str, str]
    short: Collection[str] = ()
    """Types whose values, written as text, are never much longer than their stored form. The server's limit
    for a value is one gigabyte.
    """
    fixed: Collection[str] = ()
    """Types whose values all have the same size."""


def parse(text: str) -> list[Node]:
    """The nodes at the top of a tree's text.

    >>> [top] = parse("({OPEXPR :opno 96 :args ({VAR :varno 1} {CONST :constvalue 4 [ 1 0 ]})})")
    >>> top.label, top.word("opno"), [node.label for node in top.walk()]
    ('OPEXPR', '96', ['OPEXPR', 'VAR', 'CONST'])
    """
    tokens = iter(_TOKEN.findall(text))
    return list(_nodes(_items(tokens, None)))


def relations(tops: list[Node]) -> set[int]:
    """The numbers of the relations that a tree reads."""
    numbers = (node.word("relid") for top in tops for node in top.walk() if node.label in _ENTRIES)
    return {int(number) for number in numbers if number is not None and number != "0"}


def fault(tops: list[Node], functions: Functions) -> str | None:
    """Why a tree can fail on some row or choose rows by their place, in words; None if it cannot."""
    if not tops:
        return "cannot be read"
    for top in tops:
        for node in top.walk():
            reason = _fault(node, functions)
            if reason is not None:
                return reason
    return None


def _fault(node: Node, functions: Functions) -> str | None:
    if node.label in _PLAIN:
        return None
    if node.label in _CALLS:
        return _call_fault(node, functions)
    checks: dict[str, Check] = {
        "QUERY": _query_fault,
        "RANGETBLENTRY": _entry_fault,
        "RTE": _entry_fault,
        "TABLESAMPLECLAUSE": _sample_fault,
        "VAR": _column_fault,
        "COERCEVIAIO": lambda node: _text_fault(node, functions),
        "ARRAYEXPR": lambda node: _array_fault(node, functions),
        "ARRAY": lambda node: _array_fault(node, functions),
        "SETOPERATIONSTMT": lambda node: None if _is(node, op="1", all="true") else "removes duplicates",
        "COMMONTABLEEXPR": lambda node: None if _is(node, cterecursive="false") else "is recursive",
    }
    check = checks.get(node.label)
    return f"holds the construct {node.label.lower()}" if check is None else check(node)


def _is(node: Node, **words: str) -> bool:
    return all(node.word(name) == word for name, word in words.items())


def _query_fault(node: Node) -> str | None:
    if node.word("commandType") != "1":
        return "does more than select"
    if any(node.word(name) not in ("false", None) for name in _MUST_BE_FALSE):
        return "aggregates, or has a sub-query or a window"
    if any(node.word(name) not in (NOTHING, None) or _has_nodes(node, name) for name in _MUST_BE_EMPTY):
        return "groups, sorts or limits its rows"
    return None


def _has_nodes(node: Node, name: str) -> bool:
    return any(True for _ in _nodes(node.fields.get(name, [])))


def _entry_fault(node: Node) -> str | None:
    if node.word("rtekind") not in _KINDS:
        return "reads rows from a function"
    return None


def _sample_fault(node: Node) -> str | None:
    if node.word("tsmhandler") != _BERNOULLI or node.word("repeatable") != NOTHING:
        return "draws a sample by where rows lie; only TABLESAMPLE BERNOULLI without REPEATABLE does not"
    return None


def _column_fault(node: Node) -> str | None:
    place = node.word("varattno") or "0"
    if int(place) <= 0 and place != _TABLE_OID:
        return "reads a whole row, or where a row lies"
    return None


def _text_fault(node: Node, functions: Functions) -> str | None:
    if node.word("resulttype") not in _TEXTS:
        return "reads text as a value"
    argument = next(_nodes(node.fields.get("arg", [])), Node(""))
    if argument.word(_RESULTS.get(argument.label, "")) not in functions.short:
        return "writes values as text that may be too long"
    return None


def _array_fault(node: Node, functions: Functions) -> str | None:
    """Allow arrays of one dimension whose elements are constants or have a fixed size.

    Other arrays may outgrow the server's limit or differ in their dimensions.
    """
    if node.word("multidims") != "false":
        return "makes arrays of arrays"
    below = [part for top in _nodes(node.fields.get("elements", [])) for part in top.walk()]
    constant = all(part.label in ("CONST", "RELABELTYPE") for part in below)
    if constant or node.word("element_typeid") in functions.fixed:
        return None
    return "makes arrays that may be too long"


def _call_fault(node: Node, functions: Functions) -> str | None:
    number = node.word(_CALLS[node.label]) or "0"
    if node.word("funcretset") == "true" or node.word("opretset") == "true":
        return "makes several rows of one"
    if number in functions.total:
        return None
    below = [part for value in node.fields.values() for top in _nodes(value) for part in top.walk()]
    constant = all(part.label in ("CONST", "RELABELTYPE", *_CALLS) for part in below)
    numbers = {number, *(part.word(_CALLS[part.label]) or "0" for part in below if part.label in _CALLS)}
    if constant and numbers <= set(functions.immutable):
        return None
    return f"computes with {functions.names.get(number, 'an unknown function')}"


def _items(tokens: Iterator[str], end: str | None) -> list[object]:
    """The words, nodes and lists up to the closing bracket `end`."""
    items: list[object] = []
    for token in tokens:
        if token == end:
            break
        if token == "{":
            items.append(_node(tokens))
        elif token == "(":
            items.append(_items(tokens, ")"))
        else:
            items.append(token)
    return items


def _node(tokens: Iterator[str]) -> Node:
    label, *rest = _items(tokens, "}") or [""]
    fields: dict[str, list[object]] = {}
    name = ""
    for item in rest:
        if isinstance(item, str) and item.startswith(":"):
            name = item[1:]
            fields[name] = []
        else:
            fields.setdefault(name, []).append(item)
    return Node(str(label), fields)


def _nodes(value: list[object]) -> Iterator[Node]:
    """The nodes of a field, also those inside lists."""
    for item in value:
        if isinstance(item, Node):
            yield item
        elif isinstance(item, list):
            yield from _nodes(item)
