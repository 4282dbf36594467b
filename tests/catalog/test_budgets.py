"""Promises to people: parts stay below their totals, names are lists without repetitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.budgets import Analyst, Budget, Defaults, Group, Window, read_sharing
from incrowd.catalog.declaration import shown
from tests.catalog.faults import fault_of

EPSILONS = st.floats(1e-6, 10)
DELTAS = st.floats(0, 0.5)


def test_what_is_left_out_is_a_pure_promise_or_that_of_the_promise_above() -> None:
    assert Budget(epsilon=1).delta == 0.0 and Budget(epsilon=1).threshold_share is None
    assert Window(epsilon=1).delta is None and Group(epsilon=1).delta is None
    ana = Analyst(epsilon=1)
    assert (ana.delta, ana.per_day, ana.max_epsilon, ana.groups) == (None, None, None, ())
    assert (Defaults().epsilon, Defaults().delta, Defaults().confidence) == (None, None, 0.95)


@pytest.mark.parametrize("kind", [Budget, Window, Analyst, Group])
def test_a_promise_needs_an_epsilon_above_0_and_a_delta_below_1(kind: type[Budget]) -> None:
    assert kind(epsilon=0.5, delta=1e-6).epsilon == 0.5
    assert fault_of(lambda: kind(epsilon=0)) == "epsilon: must be above 0, not 0"
    assert fault_of(lambda: kind(epsilon=1, delta=1)) == "delta: must be at least 0 and below 1, not 1"
    assert fault_of(lambda: kind.model_validate({})) == "epsilon: Field required"


@given(EPSILONS, EPSILONS, DELTAS, DELTAS)
def test_a_day_is_refused_exactly_where_it_is_above_the_lifetime_total(
    total: float, day: float, delta: float, day_delta: float
) -> None:
    def declared() -> Analyst:
        return Analyst(epsilon=total, delta=delta, per_day=Window(epsilon=day, delta=day_delta))

    if day > total:
        said = "per_day.epsilon: a day's budget is above the analyst's lifetime total"
    elif day_delta > delta:
        said = "per_day.delta: a day's delta is above the analyst's lifetime total"
    else:
        assert declared().per_day == Window(epsilon=day, delta=day_delta)
        return
    assert fault_of(declared) == said


def test_the_ends_of_a_total_belong_to_it() -> None:
    ana = Analyst(epsilon=1, delta=1e-6, per_day=Window(epsilon=1, delta=1e-6), max_epsilon=1)
    assert ana.per_day is not None and ana.max_epsilon == 1
    # The delta of a total that is left out is the dataset's, which is not known here.
    assert Analyst(epsilon=1, per_day=Window(epsilon=1, delta=0.1)).delta is None
    assert Analyst(epsilon=1, delta=0, per_day=Window(epsilon=1)).delta == 0


def test_a_cap_per_query_is_refused_above_the_total() -> None:
    assert fault_of(lambda: Analyst(epsilon=1, max_epsilon=1.01)) == (
        "max_epsilon: the cap per query is above the analyst's lifetime total"
    )


@given(st.lists(st.sampled_from(["ana", "bob", "eve"]), max_size=4))
def test_names_are_a_list_without_repetitions(names: list[str]) -> None:
    if len(set(names)) == len(names):
        assert Group(epsilon=1, members=names).members == tuple(names)  # type: ignore[arg-type]
    else:
        again = next(name for place, name in enumerate(names) if name in names[:place])
        said = f"members: {again!r} is listed twice"
        assert fault_of(lambda: Group.model_validate({"epsilon": 1, "members": names})) == said


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ("ana", "members: expected a list of names, such as [ana]"),
        ({"ana": 1}, "members: expected a list of names, not a mapping"),
        (7, "members: expected a list of names, not 7"),
        (["ana", ""], "members[1]: a name must not be empty, begin or end with a blank, or hold control"),
    ],
)
def test_what_is_no_list_of_names_is_refused(members: object, said: str) -> None:
    assert fault_of(lambda: Group.model_validate({"epsilon": 1, "members": members})).startswith(said)


@pytest.mark.parametrize("value", ["own", "group", "all"])
def test_sharing_is_one_of_three_words(value: str) -> None:
    assert read_sharing(value) == value


@pytest.mark.parametrize("value", ["ALL", "everyone", None, {"own": 1}, True, ["own"]])
def test_no_other_sharing_is_known(value: object) -> None:
    assert fault_of(lambda: read_sharing(value)) == f"expected own, group or all, not {shown(value)}"
