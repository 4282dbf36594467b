"""Events as text: JSON that any accountant can read, and the words a person reads.

The schema is versioned and documented in docs/events.md. Numbers are JSON numbers where a float's shortest
decimal is exactly the value, and strings such as "1/3" where it is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from incrowd.errors import InvalidInput
from incrowd.privacy import events

SCHEMA = "incrowd.guarantee"
VERSION = 1
_SHORT = Context(prec=6, rounding=ROUND_CEILING)


def number(value: Fraction | int) -> int | float | str:
    """A rational as JSON holds it, without loss."""
    if isinstance(value, int) or (value.denominator == 1 and abs(value) < 2**53):
        return int(value)
    try:
        near = float(value)
    except OverflowError:
        return str(value)
    return near if near and Fraction(repr(near)) == value else str(value)


def to_plain(event: events.Event) -> dict[str, Any]:
    """One event as a JSON object."""
    plain: dict[str, Any] = {"kind": event.name}
    for field in fields(event):
        value = getattr(event, field.name)
        plain[field.name] = number(value) if isinstance(value, (int, Fraction)) else to_plain(value)
    return plain


def from_plain(plain: object) -> events.Event:
    """The event that `to_plain` wrote."""
    name = plain.get("kind") if isinstance(plain, dict) else None
    if not isinstance(plain, dict) or not isinstance(name, str) or name not in events.EVENTS:
        raise InvalidInput(f"{name!r} is not a known kind of event; upgrade, or mend the record.")
    kind = events.EVENTS[name]
    names = {field.name for field in fields(kind)}
    present = set(plain) - {"kind", "count"}
    if present != names:
        raise InvalidInput(f"The event {kind.name!r} needs exactly the fields {', '.join(sorted(names))}.")
    values: dict[str, Any] = {}
    for name in names:
        value = plain[name]
        if isinstance(value, str):
            # Nothing but p/q: a power of ten in a record must not fill the memory of its reader.
            if not re.fullmatch(r"[0-9]{1,4000}(/0*[1-9][0-9]{0,3999})?", value):
                raise InvalidInput(f"{name} of the event {kind.name!r} is not a number.")
            value = Fraction(value)
        values[name] = from_plain(value) if isinstance(value, dict) else value
    return kind(**values)


def dumps(counts: Mapping[events.Event, int]) -> str:
    """A plan as canonical JSON: the same plan always gives the same text."""
    listed = [{**to_plain(event), "count": count} for event, count in counts.items()]
    return json.dumps(
        {"schema": SCHEMA, "version": VERSION, "events": listed}, sort_keys=True, separators=(",", ":")
    )


def loads(text: str) -> list[tuple[events.Event, int]]:
    """The plan that `dumps` wrote."""
    try:
        plain = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("This is not a guarantee: it is not JSON.") from error
    if (
        not isinstance(plain, dict)
        or plain.get("schema") != SCHEMA
        or not isinstance(plain.get("events"), list)
    ):
        raise InvalidInput(f"This is not a guarantee: its schema is not {SCHEMA!r}.")
    if plain.get("version") != VERSION:
        raise InvalidInput(
            f"This guarantee has version {plain.get('version')!r}; this program reads {VERSION}."
        )
    counts: list[tuple[events.Event, int]] = []
    for item in plain["events"]:
        event = from_plain(item)
        counts.append((event, item.get("count", 1)))
    return counts


def sort_key(event: events.Event) -> tuple[str, ...]:
    """A fixed order of events."""
    return tuple(str(part) for part in to_plain(event).values())


def figure(value: Fraction) -> str:
    """A figure with at most six digits, rounded up: what is printed is never below the truth.

    >>> figure(Fraction(1, 10)), figure(Fraction(1, 3)), figure(Fraction(2))
    ('0.1', '0.333334', '2')
    """
    short = _SHORT.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{short:.6g}" if abs(short.adjusted()) > 300 else f"{float(short):.6g}"


def describe(event: events.Event) -> str:
    """The event in words.

    >>> describe(events.Laplace(Fraction(1, 10)))
    'laplace(epsilon=0.1)'
    """
    parts = []
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, (int, Fraction)):
            parts.append(f"{field.name}={figure(value) if isinstance(value, Fraction) else value}")
        else:
            parts.append(describe(value))
    return f"{event.name}({', '.join(parts)})"
