"""The worked example: two safe-looking tables, and the patient of both."""

from __future__ import annotations

from incrowd.adversary.data.hospitals import FIRST, SECOND, conditions, worked_example


def test_each_hospital_hides_the_patient_and_both_together_do_not() -> None:
    told = worked_example()
    assert told["person"] == {"zip": "13012", "age": 28}
    assert (told["first hospital"]["k"], told["second hospital"]["k"]) == (4, 6)
    assert min(len(told[hospital]["candidates"]) for hospital in ("first hospital", "second hospital")) >= 3
    assert told["both"] == ["AIDS"]


def test_a_class_that_agrees_gives_its_people_away_at_once() -> None:
    assert conditions(FIRST, "13012", 35) == {"cancer"}


def test_classes_of_one_table_do_not_overlap_and_strangers_are_in_none() -> None:
    for table in (FIRST, SECOND):
        assert all(sum(ward.fits("13012", age) for ward in table) == 1 for age in range(120))
    assert conditions(FIRST, "14850", 28) == frozenset()
