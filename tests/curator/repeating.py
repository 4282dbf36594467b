"""Releases repeated without paying each time, for tests of frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from incrowd import Curator
from incrowd.curator.answer import Answer
from incrowd.curator.request import Request


def answers(curator: Curator, question: str, times: int, **asked: Any) -> Iterator[Answer]:
    """`times` independent answers to one question on unchanged data (the census of caps is drawn once)."""
    prepared = curator.prepare(Request(question, **asked))
    price = curator.price_of(prepared)
    exact = curator.execute(prepared, curator.choose_caps(prepared, price))
    for _ in range(times):
        yield Answer(prepared.plan, curator.noise(exact, price), price)
