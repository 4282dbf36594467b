"""Answers to what asks for declarations alone (`query.describing`): free, and no row is read for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from incrowd.curator.answer import Answer
from incrowd.curator.prices import Price
from incrowd.curator.request import Request
from incrowd.query import Field, Plan, description
from incrowd.query.ownership import World

if TYPE_CHECKING:
    from incrowd.curator.curator import Curator


def free_answer(
    curator: Curator, request: Request, fields: Mapping[str, Mapping[str, Field]]
) -> Answer | None:
    """What DESCRIBE and the like are answered with, for nothing; None for every other question.

    fields: the columns of public tables that the owner left to their sources.
    """
    curator.refuse_unusable()
    said = description(request.sql, World(curator.catalog, fields))
    if said is None:
        return None
    confidence = request.confidence or curator.catalog.defaults.confidence
    before = curator.budget(request.analyst)
    price = Price(0.0, 0.0, (), {}, confidence, (said.note,), before=before, free=True)
    plan = Plan((), said.query, {}, tuple(said.columns), (said.note,))
    return Answer(plan, (), price, before, recalled=True)
