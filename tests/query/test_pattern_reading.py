"""Regular expressions: what is read means what DuckDB means by it; what may be slow or differ is refused."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.pattern_reading import LONGEST, is_known, read

ENGINE = duckdb.connect(":memory:")
CLASSES = st.sampled_from(
    [
        *[
            "a",
            "b",
            "ß",
            "🧑",
            " ",
            ".",
            r"\d",
            r"\w",
            r"\s",
            r"\D",
            r"\W",
            r"\S",
            "[a-c]",
            "[^ab]",
            r"\.",
            r"\n",
        ],
        *[r"[\d\-.]", "[^\\w\\s]", r"\\", "[-a]", "[a_é]", r"[\]\[\^]", "/", "#", "-", "&&", "~", "'"],
    ]
)
TIMES = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}"])
SIMPLE = st.tuples(CLASSES, TIMES).map("".join)
GROUP = st.lists(SIMPLE, min_size=1, max_size=2).map(lambda parts: f"({'|'.join(parts)})")
BRANCH = st.lists(
    st.one_of(SIMPLE, SIMPLE, GROUP, GROUP.map(lambda group: group + "?")), min_size=1, max_size=4
)
PATTERNS = st.tuples(st.sampled_from(["", "^"]), BRANCH.map("".join), st.sampled_from(["", "$"])).map("".join)
TEXTS = st.text(st.sampled_from("ab1 .\n\rß🧑é_-[]^\\/&~'\u2028\u0301"), max_size=8)


@settings(max_examples=150, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=8))
def test_what_is_written_matches_what_duckdb_matches(text: str, texts: list[str]) -> None:
    try:
        pattern = read(text)
    except QueryError:
        return
    mine = pattern.written("duckdb")
    rows = ENGINE.execute(
        "SELECT t, REGEXP_MATCHES(t, $p), REGEXP_MATCHES(t, $m), REGEXP_FULL_MATCH(t, $p), "
        "REGEXP_MATCHES(t, $w) FROM (SELECT UNNEST($t) AS t)",
        {"p": text, "m": mine, "w": pattern.whole().written("duckdb"), "t": texts},
    ).fetchall()
    for value, given_pattern, written, full, whole in rows:
        assert (written, whole) == (given_pattern, full), (text, mine, value)
        # Python's own, with the end of the text as Java writes it.
        spark = pattern.written("spark").replace(r"\z", r"\Z")
        assert (re.search(spark, value) is not None) == written, (spark, value)


@given(PATTERNS)
def test_what_is_written_is_known_and_nothing_else(text: str) -> None:
    try:
        pattern = read(text)
    except QueryError:
        assert not is_known(text, "duckdb")
        return
    for engine in ("duckdb", "postgres", "spark"):
        assert is_known(pattern.written(engine), engine)
    assert read(pattern.written("duckdb")) == read(read(pattern.written("duckdb")).written("duckdb"))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a" * 301,
            "(",
            "(a",
            "a)",
            "[",
            "[]",
            "[^]",
            "[z-a]",
            "[a",
            "*a",
            "a**",
            "a+?",
            "a?+",
            "a{,3}",
        ),
        *(
            "a{51}",
            "a{3,2}",
            "a{0}",
            "a||b",
            "(|a)",
            "^^a",
            "a$b",
            "a^b",
            "$",
            "^",
            "(^a)",
            "(a$)",
            "^a|b",
            "a|b$",
        ),
        *(
            r"\b",
            r"\1",
            r"\A",
            r"\p{L}",
            r"\x41",
            r"\Qa\E",
            r"\u0041",
            "\\",
            "[[:alpha:]]",
            "[a&&b]",
            "[a-\\d]",
        ),
        *(
            "(?i)a",
            "(?=a)",
            "(?!a)",
            "(?<n>a)",
            "(?>a)",
            "(a)*",
            "(a|b)+",
            "(a){2}",
            "[\\W]",
            "\x07",
            "\ud800",
        ),
        *("(a+)+$", ".*a.*b.*c", "a.*b[0-9]+c", "^.*.*.*$", "[a-z]{50}" * 11, "x*y*z*", "***:a", "(?x)a"),
    ],
)
def test_what_differs_or_may_be_slow_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "^/p/[0-9]$",
        "foo|bar",
        "^[^@]+@[^@]+[.][^@]+$",
        r"\d{3}-\d{4}",
        "^(mr|mrs|dr)[.]? ",
        "a.*b",
        "^a.*b.*",
        "[a-z]+$",
    ],
)
def test_what_analysts_write_is_read(text: str) -> None:
    assert is_known(read(text).written("duckdb"), "duckdb")


@pytest.mark.parametrize(
    ("text", "letters"), [("a.*b", "a"), ("^[^@]+@[^@]+[.][^@]+$", "@."), ("[0-9]+kg", "0"), ("^a*a*b", "a")]
)
def test_a_backtracking_engine_ends_soon_on_the_worst_of_texts(text: str, letters: str) -> None:
    """Python's engine goes back as Java's does; a pattern of more steps would take hours here."""
    spark = read(text).written("spark").replace(r"\z", r"\Z")
    assert re.search(spark, (letters * LONGEST)[:LONGEST]) is None or letters == "@."


def test_case_is_folded_for_ascii_alone() -> None:
    assert read("^[A-C]b$").in_lower_case("it").written("duckdb") == "^[a-c]b$"
    with pytest.raises(QueryError, match="beyond A to Z in either case"):
        read("Ä").in_lower_case("it")


def test_the_end_of_a_text_is_no_line_break_to_java() -> None:
    assert read("a$").written("spark") == r"a\z" and read("a$").written("postgres") == "a$"
    assert not is_known("a$", "spark") and not is_known(r"a\z", "duckdb")
