"""The chain: one spelling for one value, and a hash that every field decides."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd import InvalidInput
from incrowd.curator.ledger.chain import GENESIS, Entry, Head, canonical, digest, seal, spell_time

NOON = datetime(2024, 2, 29, 12, 30, 15, 42, tzinfo=UTC)
FIRST = Head(0, GENESIS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_canonical_text_is_ascii_json_of_the_value(value: Any) -> None:
    text = canonical(value)
    assert text.isascii() and json.loads(text) == value


@given(st.dictionaries(st.text(), st.integers(), min_size=2, max_size=5))
def test_the_order_of_keys_changes_no_text(content: dict[str, int]) -> None:
    assert canonical(dict(reversed(content.items()))) == canonical(content)


def test_canonical_text_has_no_spaces_and_no_nan() -> None:
    assert canonical({"b": [1, 2], "a": None}) == '{"a":null,"b":[1,2]}'
    with pytest.raises(ValueError, match="Out of range"):
        canonical(float("nan"))


def test_the_digest_is_sha_256_of_bytes_and_empty_for_anything_else() -> None:
    assert digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest("abc") == digest(None) == digest(3) == ""


@pytest.mark.parametrize("hours", [-11, 0, 5.5, 14])
def test_a_moment_has_one_spelling_wherever_it_is(hours: float) -> None:
    local = NOON.astimezone(timezone(timedelta(hours=hours)))
    assert spell_time(local) == "2024-02-29T12:30:15.000042Z"


@given(st.integers(0, 10**12), st.binary())
def test_a_head_comes_back_from_its_text(seq: int, content: bytes) -> None:
    head = Head(seq, hashlib.sha256(content).hexdigest())
    assert Head.from_text(str(head)) == Head.from_text(f" {head}\n") == head


@pytest.mark.parametrize("text", ["", "7", f"7:{'g' * 64}", f"7:{'a' * 63}", f"x:{GENESIS}", f"-1:{GENESIS}"])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Head.from_text(text)
    assert str(refused.value) == (
        f"{text!r} is not a ledger's head; expected its number, a colon and 64 hex digits."
    )


def sealed(after: Head = FIRST, **changes: Any) -> Entry:
    settings: dict[str, Any] = {"at": NOON, "kind": "reserve", "body": {"b": 1}, "analyst": "ana"}
    return seal(after, **{**settings, **changes})


def test_an_entry_follows_the_one_before_and_states_its_hash() -> None:
    one = sealed()
    two = sealed(Head(one.seq, one.hash))
    assert (one.seq, two.seq) == (1, 2)
    assert (one.previous, two.previous) == (GENESIS, one.hash)
    assert one.hash == one.sealed_hash() and two.hash == two.sealed_hash() != one.hash
    assert one.content() == {"b": 1} and one.at == spell_time(NOON)


@pytest.mark.parametrize("name", [field.name for field in fields(Entry) if field.name != "hash"])
def test_a_change_of_any_field_changes_the_hash(name: str) -> None:
    entry = sealed()
    changed = replace(entry, **{name: entry.seq + 1 if name == "seq" else "changed"})
    assert changed.sealed_hash() != entry.hash
    assert replace(entry, hash="changed").sealed_hash() == entry.hash


def test_the_form_of_the_sealed_text_is_part_of_the_stored_format() -> None:
    """A new hash for an old entry would make every stored ledger look altered."""
    expected = f'[1,"{spell_time(NOON)}","reserve","ana","q","v","{{\\"b\\":1}}","{GENESIS}"]'
    entry = sealed(question="q", data_version="v")
    assert entry.hash == hashlib.sha256(expected.encode("ascii")).hexdigest()
