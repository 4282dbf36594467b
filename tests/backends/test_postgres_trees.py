"""Trees of views and policies: constructs on the list pass, every other is refused with its reason."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends.postgres_trees import Functions, Node, fault, parse, relations

KNOWN = Functions(
    total=["65"],
    immutable=["154", "141"],
    names={"154": "int4div", "141": "int4mul", "7": "seven"},
    short=["23"],
    fixed=["23"],
)
COLUMN = "{VAR :varno 1 :varattno 2 :vartype 23}"
LONG = "{VAR :varno 1 :varattno 2 :vartype 25}"
CONSTANT = "{CONST :consttype 23 :constvalue 4 [ 1 0 0 0 ]}"
WORDS = st.sampled_from(["<>", "7", r"a\ b", r"\{"])


def told(text: str) -> str | None:
    """Why a tree is refused; None if it is not."""
    return fault(parse(text), KNOWN)


def written(node: Node) -> str:
    """A node as the server writes it, with spaces and brackets inside of words escaped."""

    def item(value: object) -> str:
        if isinstance(value, Node):
            return written(value)
        if isinstance(value, list):
            return "(" + " ".join(map(item, value)) + ")"
        return str(value)

    fields = "".join(f" :{name} {' '.join(map(item, value))}" for name, value in node.fields.items())
    return "{" + node.label + fields + "}"


NODES = st.recursive(
    st.builds(Node, st.sampled_from(["VAR", "CONST"])),
    lambda below: st.builds(
        Node,
        st.sampled_from(["OPEXPR", "QUERY"]),
        st.dictionaries(
            st.sampled_from(["args", "opno", "arg"]),
            st.lists(below | st.lists(below, max_size=2) | WORDS, max_size=2),
            max_size=2,
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=50)
@given(NODES)
def test_a_tree_that_is_written_is_read(node: Node) -> None:
    assert parse(written(node)) == [node]
    labels = re.findall(r"(?<!\\)\{(\w+)", written(node))
    assert [below.label for below in node.walk()] == labels


def test_a_field_is_one_word_or_none() -> None:
    (node,) = parse(f"{{OPEXPR :opno 96 :args ({COLUMN}) :pair a b :inner {COLUMN}}}")
    assert [node.word(name) for name in ("opno", "args", "pair", "inner", "absent")] == ["96", *[None] * 4]


def test_the_relations_of_a_tree_are_the_tables_it_reads() -> None:
    tops = parse(
        "({QUERY :rtable ({RANGETBLENTRY :rtekind 0 :relid 16384} {RTE :rtekind 0 :relid 7} "
        "{RTE :rtekind 2 :relid 0} {RTE :rtekind 1} {VAR :relid 9})})"
    )
    assert relations(tops) == {16384, 7} and relations([]) == set()


QUERY = "{QUERY :commandType 1 :hasAggs false :groupClause <> :limitCount <> :targetList (%s)}"


@pytest.mark.parametrize(
    "tree",
    [
        QUERY % COLUMN,
        "{QUERY :commandType 1}",
        f"{{CASEEXPR :args ({{CASEWHEN :expr {COLUMN} :result {CONSTANT}}})}}",
        "{RANGETBLENTRY :rtekind 0 :relid 5}",
        *(f"{{RTE :rtekind {kind}}}" for kind in "012568"),
        "{TABLESAMPLECLAUSE :tsmhandler 3313 :repeatable <>}",
        "{VAR :varattno 1}",
        "{VAR :varattno -6}",
        f"{{COERCEVIAIO :arg {COLUMN} :resulttype 25}}",
        f"{{COERCEVIAIO :arg {CONSTANT} :resulttype 1043}}",
        f"{{ARRAYEXPR :element_typeid 23 :elements ({COLUMN}) :multidims false}}",
        f"{{ARRAY :element_typeid 25 :elements ({{RELABELTYPE :arg {CONSTANT}}}) :multidims false}}",
        "{SETOPERATIONSTMT :op 1 :all true}",
        "{COMMONTABLEEXPR :cterecursive false}",
        f"{{OPEXPR :opfuncid 65 :opretset false :args ({COLUMN} {COLUMN})}}",
        f"{{FUNCEXPR :funcid 154 :args ({CONSTANT} {{OPEXPR :opfuncid 141 :args ({CONSTANT} {CONSTANT})}})}}",
        f"{{SCALARARRAYOPEXPR :opfuncid 65 :args ({COLUMN})}}",
    ],
)
def test_what_fails_on_no_row_passes(tree: str) -> None:
    assert told(tree) is None


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ("", "cannot be read"),
        ("<>", "cannot be read"),
        ("{QUERY :commandType 2}", "does more than select"),
        ("{QUERY}", "does more than select"),
        *(
            (f"{{QUERY :commandType 1 :{flag} true}}", "aggregates, or has a sub-query or a window")
            for flag in ("hasAggs", "hasWindowFuncs", "hasTargetSRFs", "hasSubLinks", "hasDistinctOn")
        ),
        *(
            (f"{{QUERY :commandType 1 :{flag} true}}", "aggregates, or has a sub-query or a window")
            for flag in ("hasRecursive", "hasModifyingCTE", "hasForUpdate")
        ),
        *(
            (f"{{QUERY :commandType 1 :{clause} ({CONSTANT})}}", "groups, sorts or limits its rows")
            for clause in ("groupClause", "havingQual", "windowClause", "distinctClause", "sortClause")
        ),
        *(
            (f"{{QUERY :commandType 1 :{clause} {CONSTANT}}}", "groups, sorts or limits its rows")
            for clause in ("groupingSets", "limitOffset", "limitCount", "rowMarks")
        ),
        ("{QUERY :commandType 1 :sortClause 7}", "groups, sorts or limits its rows"),
        ("{RANGETBLENTRY :rtekind 3}", "reads rows from a function"),
        ("{RTE}", "reads rows from a function"),
        (
            "{TABLESAMPLECLAUSE :tsmhandler 3314 :repeatable <>}",
            "draws a sample by where rows lie; only TABLESAMPLE BERNOULLI without REPEATABLE does not",
        ),
        (
            f"{{TABLESAMPLECLAUSE :tsmhandler 3313 :repeatable {CONSTANT}}}",
            "draws a sample by where rows lie; only TABLESAMPLE BERNOULLI without REPEATABLE does not",
        ),
        ("{VAR :varattno 0}", "reads a whole row, or where a row lies"),
        ("{VAR :varattno -1}", "reads a whole row, or where a row lies"),
        ("{VAR}", "reads a whole row, or where a row lies"),
        (f"{{COERCEVIAIO :arg {COLUMN} :resulttype 23}}", "reads text as a value"),
        (f"{{COERCEVIAIO :arg {LONG} :resulttype 25}}", "writes values as text that may be too long"),
        ("{COERCEVIAIO :resulttype 25}", "writes values as text that may be too long"),
        (f"{{ARRAYEXPR :element_typeid 23 :elements ({COLUMN}) :multidims true}}", "makes arrays of arrays"),
        (f"{{ARRAYEXPR :element_typeid 23 :elements ({COLUMN})}}", "makes arrays of arrays"),
        (
            f"{{ARRAYEXPR :element_typeid 25 :elements ({LONG}) :multidims false}}",
            "makes arrays that may be too long",
        ),
        ("{SETOPERATIONSTMT :op 1 :all false}", "removes duplicates"),
        ("{SETOPERATIONSTMT :op 2 :all true}", "removes duplicates"),
        ("{COMMONTABLEEXPR :cterecursive true}", "is recursive"),
        (f"{{OPEXPR :opfuncid 154 :args ({COLUMN} {CONSTANT})}}", "computes with int4div"),
        (f"{{NULLIFEXPR :opfuncid 7 :args ({CONSTANT})}}", "computes with seven"),
        (f"{{DISTINCTEXPR :opfuncid 8 :args ({CONSTANT})}}", "computes with an unknown function"),
        (f"{{FUNCEXPR :args ({CONSTANT})}}", "computes with an unknown function"),
        ("{FUNCEXPR :funcid 65 :funcretset true}", "makes several rows of one"),
        ("{OPEXPR :opfuncid 65 :opretset true}", "makes several rows of one"),
        (
            f"{{FUNCEXPR :funcid 154 :args ({{OPEXPR :opfuncid 7 :args ({CONSTANT})}})}}",
            "computes with int4div",
        ),
        (QUERY % "{AGGREF :aggfnoid 7}", "holds the construct aggref"),
    ],
)
def test_what_may_fail_or_choose_by_place_is_refused(tree: str, said: str) -> None:
    assert told(tree) == said


@given(st.text("ABCXYZ", min_size=1, max_size=5))
def test_a_construct_that_is_not_known_is_refused_wherever_it_stands(label: str) -> None:
    label = f"X{label}"
    for tree in (f"{{{label}}}", QUERY % f"{{COALESCE :args ({COLUMN} {{{label}}})}}"):
        assert told(tree) == f"holds the construct {label.lower()}"


def test_every_top_is_checked() -> None:
    assert told(f"({COLUMN} {{AGGREF}})") == "holds the construct aggref"
