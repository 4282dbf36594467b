"""Values go into an owner's file without touching what she wrote around them."""

from __future__ import annotations

import pytest

from incrowd.catalog import parse
from incrowd.catalog.amending import amended
from incrowd.errors import CatalogError
from tests.catalog.test_bought import TEXT
from tests.hospital import blocks

PROPOSED = """\
# The clinic.
tables:
  visits:
    unit: patient  # a person
    columns:
      cost:
        type: float
        bounds: [0, 10000]   # euro
      ward:
        type: text
        # domain: [FILL]  # public values; without them GROUP BY costs delta
      area:
        type: text
        domain:
          - north
          - south  # of the river
# The end.
"""
VISITS = ("tables", "visits")


def with_value(text: str, path: tuple[str, ...], value: object, note: str = "") -> str:
    return amended(text, {path: value}, {path: note} if note else {}, {})


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_a_new_field_of_a_table_goes_below_its_unit() -> None:
    after = with_value(PROPOSED, (*VISITS, "contribution"), 8, "2026-11-16: no unit has more")
    line = "    contribution: 8  # bought 2026-11-16: no unit has more"
    assert changed(PROPOSED, after) == ([], [line])
    assert after.splitlines()[4] == line


def test_a_value_takes_the_place_of_another_and_leaves_the_comment_of_the_owner() -> None:
    after = with_value(PROPOSED, (*VISITS, "columns", "cost", "bounds"), (0.0, 512.0), "2026: none outside")
    assert changed(PROPOSED, after) == (
        ["        bounds: [0, 10000]   # euro"],
        ["        bounds: [0.0, 512.0]   # euro"],
    )


def test_a_note_takes_the_place_of_an_earlier_note() -> None:
    path = (*VISITS, "contribution")
    once = with_value(PROPOSED, path, 8, "2026-11-16: no unit has more")
    again = with_value(once, path, 16, "2026-11-17: at most 2 units have more")
    assert changed(PROPOSED, again)[1] == [
        "    contribution: 16  # bought 2026-11-17: at most 2 units have more"
    ]


def test_a_domain_takes_the_place_of_the_hint_and_of_a_list_in_lines() -> None:
    after = with_value(PROPOSED, (*VISITS, "columns", "ward", "domain"), ("a", "b"))
    assert "# domain: [FILL]" not in after and "        domain: [a, b]\n      area:" in after
    after = with_value(PROPOSED, (*VISITS, "columns", "area", "domain"), ("east",))
    assert "        domain: [east]  # of the river\n# The end." in after


def test_fields_between_braces_stay_there() -> None:
    after = with_value(TEXT, (*VISITS, "columns", "ward", "nullable"), False)
    assert "ward: {type: text, domain: [a, b], nullable: false}" in after
    after = with_value(TEXT, (*VISITS, "columns", "cost", "bounds"), (1, 2))
    assert "cost: {type: float, bounds: [1, 2], contribution: 4096}" in after


def test_the_section_of_what_was_bought_is_written_anew_at_its_place_or_at_the_end() -> None:
    bought = parse(TEXT).bought
    bare, _, section = TEXT.partition("bought:\n")
    appended = amended(bare, {}, {}, bought)
    assert appended.startswith(bare) and parse(appended).bought == bought
    moved = f"bought:\n{section}# After it.\n{bare}"
    assert parse(amended(moved, {}, {}, bought)) == parse(TEXT)
    assert "# After it.\n" in amended(moved, {}, {}, bought)
    assert amended(appended, {}, {}, bought) == appended


def test_the_file_of_the_readme_can_be_amended() -> None:
    (text,) = blocks("README.md", "yaml")
    after = with_value(text, (*VISITS, "contribution"), 7)
    assert changed(text, after)[1] == [
        "    contribution: 7              # a patient counts for at most 5 visits in a COUNT"
    ]
    assert parse(after).tables["visits"].contribution == 7


def test_a_part_that_is_no_mapping_is_refused_in_one_sentence() -> None:
    with pytest.raises(CatalogError, match="cannot be written into the file"):
        with_value(PROPOSED, ("tables", "nowhere", "contribution"), 1)
