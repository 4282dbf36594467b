"""MODE, HISTOGRAM and the most frequent values: nothing is released but the count of each value."""

from __future__ import annotations

import pandas as pd
import pytest

from incrowd import Curator
from incrowd.errors import QueryError
from tests.backends.houses import plan_of

LISTS = [
    "MODE(grp)",
    "HISTOGRAM(grp)",
    "APPROX_TOP_K(grp, 3)",
    "APPROX_TOP_K(grp)",
    "APPROX_TOP_COUNT(grp, 1)",
]


@pytest.mark.parametrize("mode", ["user", "per", "row"])
@pytest.mark.parametrize(
    "listed", [*LISTS, "MODE() WITHIN GROUP (ORDER BY grp)", "MODE(grp) || HISTOGRAM(grp)"]
)
def test_what_is_released_is_the_count_of_each_value(listed: str, mode: str) -> None:
    """The bounded plan is that of COUNT(*) with GROUP BY, so every engine counts the same."""
    counts = "SELECT cat, grp, COUNT(*) AS n FROM visits WHERE x > 3 GROUP BY cat, grp"
    asked = f"SELECT cat, {listed} AS z FROM visits WHERE x > 3 GROUP BY cat"
    assert plan_of(asked, mode).fingerprint == plan_of(counts, mode).fingerprint


def test_of_all_rows_there_is_one_list() -> None:
    counts = plan_of("SELECT cat, COUNT(*) AS n FROM visits GROUP BY cat", "user")
    assert plan_of("SELECT MODE(cat) AS z FROM visits", "user").fingerprint == counts.fingerprint


def test_the_answer_says_what_the_list_is_made_of() -> None:
    (leaf,) = plan_of("SELECT MODE() WITHIN GROUP (ORDER BY grp) AS z FROM visits", "user").leaves
    (counts,) = leaf.aggregates
    assert counts.label == "the counts of MODE(grp)"
    assert counts.note.startswith("MODE(grp) is made of noisy counts: values whose counts are close may")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("MODE(grp) FILTER (WHERE b)", "takes no FILTER here; write its condition into WHERE."),
        ("MODE(DISTINCT grp)", "needs one column, as in MODE(x)."),
        ("MODE(grp, x)", "needs one column, as in MODE(x)."),
        ("MODE(x) WITHIN GROUP (ORDER BY grp)", "needs one column, as in MODE(x)."),
        ("MODE() WITHIN GROUP (ORDER BY grp, x)", "needs one column, as in MODE(x)."),
        ("MODE()", "needs one column, as in MODE(x)."),
        ("HISTOGRAM(x, [1, 2])", "takes one column here; for bins, GROUP BY WIDTH_BUCKET or CASE."),
        ("HISTOGRAM()", "HISTOGRAM() takes one column here"),
        ("APPROX_TOP_K(grp, 0)", "needs the number of values, a whole number from 1 to 10000."),
        ("APPROX_TOP_K(grp, x)", "needs the number of values, a whole number from 1 to 10000."),
        ("APPROX_TOP_K(grp, 1.5)", "needs the number of values, a whole number from 1 to 10000."),
        ("APPROX_TOP_K(grp, 1, 2)", "takes one column here"),
        ("MODE(grp), MODE(x) AS y", "MODE(grp) and MODE(x) count different values; ask for each by itself."),
        (
            "MODE(grp), COUNT(*) AS y",
            "MODE(grp) stands alone, or with the columns of GROUP BY; ask for COUNT(*)",
        ),
        ("MODE(grp), x AS y", "x must be in GROUP BY or inside an aggregate."),
        ("MODE(grp, contribution_bounds_per_row => (0, 1))", "counts each row once and takes no bounds"),
        ("MODE(user_id)", "Grouping by user_id would single out each protected unit"),
        ("MODE(NULL)", "GROUP BY NULL makes no groups"),
    ],
)
def test_what_has_no_counts_of_its_own_is_refused(asked: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(
            f"SELECT {asked} AS z FROM visits" if " AS " not in asked else f"SELECT {asked} FROM visits",
            "user",
        )
    assert said in str(refusal.value)


def test_levels_of_groups_are_refused() -> None:
    with pytest.raises(QueryError, match=r"MODE\(grp\) takes plain GROUP BY, without ROLLUP and the like"):
        plan_of("SELECT cat, MODE(grp) AS z FROM visits GROUP BY ROLLUP (cat)", "user")


def test_a_list_does_not_stand_in_a_sub_query_of_one_person() -> None:
    with pytest.raises(QueryError):
        plan_of(
            "SELECT COUNT(m) AS n FROM (SELECT user_id, MODE(grp) AS m FROM visits GROUP BY user_id)", "user"
        )


@pytest.fixture(scope="module")
def curator() -> Curator:
    """Values whose counts are so far apart that noise exchanges them with a probability below 1e-20."""
    rows = [("a", 1, "x")] * 900 + [("a", 2, "y")] * 500 + [("b", 3, None)] * 2_000 + [("b", 2, "y")] * 700
    frame = pd.DataFrame(rows, columns=["ward", "stars", "dx"]).reset_index(names="id")
    return Curator.from_tables(
        t=frame,
        unit="id",
        bounds={"t.stars": (1, 4)},
        domains={"t.ward": ["a", "b", "c"]},
        budget=(20.0, 1e-5),
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("SELECT MODE(stars) AS z FROM t", [[3]]),
        ("SELECT MODE(dx) AS z FROM t", [["y"]]),
        ("SELECT APPROX_TOP_K(dx, 1) AS z FROM t", [[["y"]]]),
        ("SELECT APPROX_TOP_K(stars, 3) AS z FROM t", [[[3, 2, 1]]]),
        ("SELECT APPROX_TOP_K(dx) AS z FROM t", [[["y", "x"]]]),
        ("SELECT ward, MODE(dx) AS z FROM t GROUP BY ward ORDER BY ward LIMIT 2", [["a", "x"], ["b", "y"]]),
        ("SELECT z FROM (SELECT ward, MODE(dx) AS z FROM t GROUP BY ALL) WHERE ward = 'b'", [["y"]]),
    ],
)
def test_the_list_is_in_the_order_of_the_counts(
    curator: Curator, asked: str, expected: list[list[object]]
) -> None:
    assert curator.ask(asked, epsilon=1.0).to_arrow().to_pylist() == [
        dict(zip(["ward", "z"] if len(row) == 2 else ["z"], row, strict=True)) for row in expected
    ]


def test_a_histogram_shows_the_counts_that_are_on_record(curator: Curator) -> None:
    counts = curator.ask("SELECT stars, COUNT(*) AS n FROM t GROUP BY stars", epsilon=1.0)
    listed = curator.ask(
        "SELECT HISTOGRAM(stars) AS h, APPROX_TOP_COUNT(stars, 1) AS top FROM t", epsilon=1.0
    )
    assert listed.recalled
    (row,) = listed.to_arrow().to_pylist()
    plain = {number["stars"]: number["n"] for number in counts if number["stars"] is not None}
    assert dict(row["h"]) == plain
    assert row["top"] == [{"value": 3, "count": plain[3]}]


def test_of_no_rows_private_values_have_no_mode() -> None:
    frame = pd.DataFrame({"id": pd.Series([], dtype="int64"), "dx": pd.Series([], dtype="str")})
    with Curator.from_tables(t=frame, unit="id", budget=(20.0, 1e-5)) as empty:
        (row,) = (
            empty.ask("SELECT MODE(dx) AS m, HISTOGRAM(dx) AS h FROM t", epsilon=1.0).to_arrow().to_pylist()
        )
    assert row["m"] is None and not row["h"]
