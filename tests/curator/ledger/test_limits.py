"""Caps from a catalog: who is held by which, what each holds, and who sees whose answers."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd import BudgetExceeded, NotPermitted
from incrowd.catalog import SOLE_ANALYST, check
from incrowd.curator.ledger.limits import Cap, Caps
from incrowd.privacy import capacity, gaussian, pure

PEOPLE = {
    "ana": {"epsilon": 1.0, "per_day": {"epsilon": 0.25}, "max_epsilon": 0.5},
    "bob": {"epsilon": 1.5, "delta": 0},
    "cyd": {"epsilon": 2.0},
}
STAFF = {"staff": {"epsilon": 1.75, "members": ["ana", "bob"]}}


def caps(**sections: Any) -> Caps:
    content: dict[str, Any] = {
        "sources": {"s": {"csv": "a.csv"}},
        "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
        "budget": {"epsilon": 3.0, "delta": 1e-6},
        **sections,
    }
    return Caps.of(check(content))


def test_without_analysts_the_dataset_is_the_only_cap() -> None:
    alone = caps()
    assert set(alone.caps) == {"dataset"} and alone.holders == {SOLE_ANALYST: ("dataset",)}
    (cap,) = alone.held(SOLE_ANALYST)
    assert (cap.epsilon, cap.delta, cap.limit, cap.daily) == (3.0, 1e-6, capacity(3.0, 1e-6), False)


def test_an_analyst_is_held_by_dataset_groups_herself_and_her_day() -> None:
    declared = caps(analysts=PEOPLE, groups=STAFF)
    assert declared.holders == {
        "owner": ("dataset",),
        "ana": ("dataset", "group:staff", "analyst:ana", "day:ana"),
        "bob": ("dataset", "group:staff", "analyst:bob"),
        "cyd": ("dataset", "analyst:cyd"),
    }
    held = {cap.key: cap for cap in declared.held("ana")}
    assert [cap.epsilon for cap in held.values()] == [3.0, 1.75, 1.0, 0.25]
    assert [cap.whose for cap in held.values()] == [
        "The dataset's budget",
        "The budget of group staff",
        "The budget of analyst ana",
        "Today's budget of analyst ana",
    ]
    assert [cap.daily for cap in held.values()] == [False, False, False, True]


def test_a_delta_is_an_analysts_own_or_that_of_the_promise_above() -> None:
    declared = caps(analysts=PEOPLE, groups=STAFF).caps
    assert declared["analyst:bob"].delta == 0 and declared["analyst:bob"].limit == capacity(1.5)
    for key in ("group:staff", "analyst:ana", "day:ana", "analyst:cyd"):
        assert declared[key].delta == 1e-6 and declared[key].limit.kind == "zcdp"


def test_the_owner_decides_the_share_of_delta_for_thresholds() -> None:
    most = caps(budget={"epsilon": 3.0, "delta": 1e-6, "threshold_share": 0.9}).caps["dataset"]
    assert most.limit == capacity(3.0, 1e-6, threshold_share=0.9) != capacity(3.0, 1e-6)


def test_somebody_else_may_not_ask() -> None:
    with pytest.raises(NotPermitted) as refused:
        caps(analysts=PEOPLE).held("eve")
    assert str(refused.value) == "There is no analyst 'eve' in the catalog; the owner adds one there."


def test_a_query_may_cost_its_cap_and_no_more() -> None:
    declared = caps(analysts=PEOPLE)
    declared.check_query("ana", pure(0.5))
    declared.check_query("ana", pure(0.5000000001))
    declared.check_query("bob", pure(100.0))
    asked = f"epsilon {pure(0.75).epsilon(1e-6):.6g}"
    with pytest.raises(BudgetExceeded) as refused:
        declared.check_query("ana", pure(0.75))
    assert str(refused.value) == (
        f"Analyst ana may spend at most epsilon 0.5 on one query, but {asked} at delta 1e-06 was asked; "
        "ask for less."
    )
    assert (refused.value.asked, refused.value.left) == (asked, "epsilon 0.5")


def test_a_pure_cap_per_query_names_no_delta_and_takes_no_gaussian() -> None:
    declared = caps(analysts={"bob": {"epsilon": 1.5, "delta": 0, "max_epsilon": 0.5}})
    with pytest.raises(BudgetExceeded, match=r"but epsilon inf was asked; ask for less\.$"):
        declared.check_query("bob", gaussian(0.01))


@pytest.mark.parametrize(
    ("sharing", "seen"), [("own", {"ana"}), ("group", {"ana", "bob"}), ("all", {"ana", "bob", "cyd"})]
)
def test_recorded_answers_are_seen_as_far_as_the_owner_shares(sharing: str, seen: set[str]) -> None:
    declared = caps(analysts=PEOPLE, groups=STAFF, sharing=sharing)
    assert {name for name in PEOPLE if declared.may_see(name, "ana")} == seen


def test_those_in_no_group_share_nothing() -> None:
    declared = caps(analysts=PEOPLE, sharing="group")
    assert not declared.may_see("ana", "bob") and not declared.may_see("eve", "bob")


def test_terms_are_recognised_by_their_hash() -> None:
    one, same = caps(analysts=PEOPLE, groups=STAFF), caps(analysts=PEOPLE, groups=STAFF)
    assert one.terms_hash == same.terms_hash
    others = [caps(), caps(analysts=PEOPLE), caps(analysts={**PEOPLE, "cyd": {"epsilon": 2.5}}, groups=STAFF)]
    assert len({one.terms_hash, *(other.terms_hash for other in others)}) == 4


def test_terms_state_whole_numbers_as_text() -> None:
    terms = caps(budget={"epsilon": 3.0}).terms
    limit = capacity(3.0)
    assert terms["caps"]["dataset"] == {
        "epsilon": "3.0",
        "delta": "0.0",
        "kind": "pure",
        "main": str(limit.main),
        "pure": str(limit.epsilon),
        "beside": "0",
        "daily": False,
    }
    assert terms["holders"] == {SOLE_ANALYST: ["dataset"]}


def test_a_cap_holds_for_good_unless_it_is_for_a_day() -> None:
    cap = Cap("dataset", "The dataset's budget", 1.0, 0.0, capacity(1.0))
    assert not cap.daily
    with pytest.raises(AttributeError):
        cap.daily = True  # type: ignore[misc]
