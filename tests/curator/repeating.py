"""Releases repeated without paying each time, for tests of frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from incrowd import Curator
from incrowd.curator import releasing
from incrowd.curator.answer import Answer


def answers(curator: Curator, question: str, times: int, **asked: Any) -> Iterator[Answer]:
    """`times` independent answers to one question on unchanged data (the census of caps is drawn once)."""
    plan = curator.bound(
        curator.parse(question),
        asked.pop("contribution", None),
        asked.pop("groups", None),
        asked.get("delta"),
    )
    price = curator.price(plan, **asked)
    keys = [releasing.public_keys(leaf, curator._backend) for leaf in plan.leaves]
    exact = curator.execute(plan, price, keys)
    for _ in range(times):
        yield Answer(plan, curator.noise(exact, price), price)
