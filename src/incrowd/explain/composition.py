"""A list of releases as people type it: `laplace:0.01*1000 gaussian:0.1*100 rr:0.1*20`.

Each word is a mechanism, its parameter after a colon, and perhaps how many times it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    Guarantee,
    approximate,
    bounded_range,
    compose,
    gaussian,
    laplace,
    pure,
    randomized_response,
    threshold,
    zcdp,
)
from incrowd.privacy.amounts import items_of

KINDS: dict[str, tuple[str, Callable[[float], Guarantee]]] = {
    "laplace": ("epsilon", laplace),
    "gaussian": ("mu = sensitivity / sigma", gaussian),
    "exponential": ("epsilon", bounded_range),
    "rr": ("epsilon", randomized_response),
    "pure": ("epsilon", pure),
    "zcdp": ("rho", zcdp),
    "threshold": ("delta", threshold),
}
"""Mechanisms by name: what the number after the colon is, and the guarantee that it makes."""

_WORD = re.compile(
    r"(?P<kind>[a-z_-]+):(?P<first>[^,*]+)(,(?P<second>[^,*]+))?(\*(?P<times>.+))?", re.IGNORECASE
)
_EXAMPLE = "write name:parameter*times, such as laplace:0.1*20"


def read_releases(words: Iterable[str]) -> Guarantee:
    """The guarantee of all that the words list.

    >>> read_releases(["laplace:0.1*20", "approximate:0.5,1e-9"])
    <Guarantee epsilon=2.5, delta=1e-09: approximate(epsilon=0.5, delta=1e-09) + laplace(epsilon=0.1) x 20>
    """
    texts = items_of(words, f"Releases are a list of words; {_EXAMPLE}.")
    if not all(isinstance(text, str) for text in texts):
        raise InvalidInput(f"Each release is a word; {_EXAMPLE}.")
    parts = [_release(word) for text in texts for word in text.split()]
    if not parts:
        raise InvalidInput(f"No release is listed; {_EXAMPLE}.")
    return compose(*parts)


def _release(word: str) -> Guarantee:
    match = _WORD.fullmatch(word)
    if match is None:
        raise InvalidInput(f"{word!r} is not a release; {_EXAMPLE}.")
    kind = match["kind"].lower()
    times = _whole(match["times"], word) if match["times"] else 1
    first = _number(match["first"], word)
    if kind == "approximate":
        if match["second"] is None:
            raise InvalidInput(f"{word!r} lacks its delta; write approximate:epsilon,delta.")
        return approximate(first, _number(match["second"], word)) * times
    if kind not in KINDS:
        raise InvalidInput(
            f"{match['kind']!r} is no mechanism known here; use {', '.join([*KINDS, 'approximate'])}."
        )
    if match["second"] is not None:
        raise InvalidInput(f"{word!r} has one number too many; {kind} takes its {KINDS[kind][0]} alone.")
    return KINDS[kind][1](first) * times


def _number(text: str, word: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text!r} in {word!r} is not a number; {_EXAMPLE}.") from None


def _whole(text: str, word: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInput(f"{text!r} in {word!r} is not a number of times; {_EXAMPLE}.")
    return int(text)
