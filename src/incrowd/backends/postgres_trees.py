"""Whether an expression that PostgreSQL evaluates by itself, in a view or a policy, can fail on some row.

An error that depends on a row is a leak, and so is a row that is chosen by where it lies. The server keeps
views, row-level security and generated columns as trees (`pg_node_tree`), with each function by its number:
they are read here, and what is not on a list of total constructs is refused. Allowed are columns, filters,
joins, UNION ALL, CASE, COALESCE, comparisons of built-in types, casts that only widen, constants, arrays that
stay small, and TABLESAMPLE BERNOULLI. Whether a view keeps each row with one unit is not seen here: that the
owner declares.
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
"""Where a node says its type."""
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
"""Tables, sub-queries, joins, VALUES, names of WITH, and no table at all; functions are not here."""


@dataclass(frozen=True)
class Node:
    """A node of a tree: its label and its fields, each a list of words and nodes."""

    label: str
    fields: dict[str, list[object]] = field(default_factory=dict)

    def word(self, name: str) -> str | None:
        """A field that is one word; None where it is absent or something else."""
        found = self.fields.get(name, [])
        return found[0] if len(found) == 1 and isinstance(found[0], str) else None

    def walk(self) -> Iterator[Node]:
        """The node and all below it."""
        yield self
        for value in self.fields.values():
            for each in _nodes(value):
                yield from each.walk()


@dataclass(frozen=True)
class Functions:
    """What the server says about its functions, by number."""

    total: Collection[str]
    """Those that no value makes raise."""
    immutable: Collection[str]
    """Those of PostgreSQL itself that always give the same result for the same arguments. Where all arguments
    are constants, the planner computes them before it reads a row.
    """
    names: Mapping[str, str]
    short: Collection[str] = ()
    """The types whose values, as text, are never much longer than they are stored: a gigabyte is the most
    that the server makes.
    """
    fixed: Collection[str] = ()
    """The types all of whose values have the same size."""


def parse(text: str) -> list[Node]:
    """The nodes at the top of a tree's text.

    >>> [top] = parse("({OPEXPR :opno 96 :args ({VAR :varno 1} {CONST :constvalue 4 [ 1 0 ]})})")
    >>> top.label, top.word("opno"), [each.label for each in top.walk()]
    ('OPEXPR', '96', ['OPEXPR', 'VAR', 'CONST'])
    """
    tokens = iter(_TOKEN.findall(text))
    return list(_nodes(_items(tokens, None)))


def relations(tops: list[Node]) -> set[int]:
    """The numbers of the relations that a tree reads."""
    found = (each.word("relid") for top in tops for each in top.walk() if each.label in _ENTRIES)
    return {int(each) for each in found if each is not None and each != "0"}


def fault(tops: list[Node], functions: Functions) -> str | None:
    """What in a tree can fail on some row or choose rows by their place, in words; None where nothing can."""
    if not tops:
        return "cannot be read"
    for top in tops:
        for node in top.walk():
            found = _fault(node, functions)
            if found is not None:
                return found
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
    of = next(_nodes(node.fields.get("arg", [])), Node(""))
    if of.word(_RESULTS.get(of.label, "")) not in functions.short:
        return "writes values as text that may be too long"
    return None


def _array_fault(node: Node, functions: Functions) -> str | None:
    """Arrays of one dimension, of constants or of values of one size: others may outgrow the server's limit,
    or differ in their dimensions.
    """
    if node.word("multidims") != "false":
        return "makes arrays of arrays"
    below = [each for top in _nodes(node.fields.get("elements", [])) for each in top.walk()]
    constant = all(each.label in ("CONST", "RELABELTYPE") for each in below)
    if constant or node.word("element_typeid") in functions.fixed:
        return None
    return "makes arrays that may be too long"


def _call_fault(node: Node, functions: Functions) -> str | None:
    number = node.word(_CALLS[node.label]) or "0"
    if node.word("funcretset") == "true" or node.word("opretset") == "true":
        return "makes several rows of one"
    if number in functions.total:
        return None
    below = [each for value in node.fields.values() for top in _nodes(value) for each in top.walk()]
    constant = all(each.label in ("CONST", "RELABELTYPE", *_CALLS) for each in below)
    numbers = {number, *(each.word(_CALLS[each.label]) or "0" for each in below if each.label in _CALLS)}
    if constant and numbers <= set(functions.immutable):
        return None
    return f"computes with {functions.names.get(number, 'an unknown function')}"


def _items(tokens: Iterator[str], end: str | None) -> list[object]:
    """Words, nodes and lists up to a closing bracket."""
    found: list[object] = []
    for token in tokens:
        if token == end:
            break
        if token == "{":
            found.append(_node(tokens))
        elif token == "(":
            found.append(_items(tokens, ")"))
        else:
            found.append(token)
    return found


def _node(tokens: Iterator[str]) -> Node:
    label, *rest = _items(tokens, "}") or [""]
    fields: dict[str, list[object]] = {}
    name = ""
    for each in rest:
        if isinstance(each, str) and each.startswith(":"):
            name = each[1:]
            fields[name] = []
        else:
            fields.setdefault(name, []).append(each)
    return Node(str(label), fields)


def _nodes(value: list[object]) -> Iterator[Node]:
    """The nodes of a field, in lists or alone."""
    for each in value:
        if isinstance(each, Node):
            yield each
        elif isinstance(each, list):
            yield from _nodes(each)
