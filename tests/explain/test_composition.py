"""Lists of releases as people type them."""

from __future__ import annotations

import pytest

from incrowd.errors import InvalidInput
from incrowd.explain import read_releases
from incrowd.privacy import (
    approximate,
    bounded_range,
    compare,
    gaussian,
    laplace,
    pure,
    randomized_response,
    threshold,
    zcdp,
)


def test_every_mechanism_is_read_as_its_guarantee() -> None:
    words = "laplace:0.01*1000 gaussian:0.1*100 exponential:0.1*10 rr:0.1*20 pure:1 zcdp:0.2*2 threshold:1e-9"
    expected = (
        laplace(0.01) * 1000
        + gaussian(0.1) * 100
        + bounded_range(0.1) * 10
        + randomized_response(0.1) * 20
        + pure(1)
        + zcdp(0.2) * 2
        + threshold(1e-9)
        + approximate(0.5, 1e-8) * 3
    )
    assert read_releases([*words.split(), "approximate:0.5,1e-8*3"]) == expected


def test_one_text_or_several_mean_the_same() -> None:
    assert read_releases(["laplace:0.1*2 pure:1"]) == read_releases(["LAPLACE:0.1*2", "pure:1"])


def test_the_table_holds_the_five_theorems_and_exact_is_the_least() -> None:
    rows = compare(read_releases(["laplace:0.01*1000"]), 1e-6)
    assert [row.method for row in rows] == ["basic", "advanced", "optimal homogeneous", "zCDP", "exact"]
    assert min(row.epsilon for row in rows) == rows[-1].epsilon


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "No release is listed"),
        ("laplace", "'laplace' is not a release"),
        ("laplace:", "'laplace:' is not a release"),
        ("laplce:1", "'laplce' is no mechanism"),
        ("laplace:x", "'x' in 'laplace:x' is not a number"),
        ("laplace:0.1*0", "'0' in 'laplace:0.1*0' is not a number of times"),
        ("laplace:0.1*1.5", "is not a number of times"),
        ("laplace:0.1,2", "one number too many"),
        ("approximate:0.1", "lacks its delta"),
        ("laplace:-1", "epsilon"),
        ("laplace:nan", "epsilon"),
        ("threshold:2", "delta"),
    ],
)
def test_what_is_no_release_is_told_in_one_sentence(word: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read_releases([word])
    assert said in str(error.value) and str(error.value).endswith(".")
