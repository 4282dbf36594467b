"""The caps that one ask must fit, all at once: dataset, groups, analyst, day, query.

They come from the owner's catalog each time a ledger is opened, while what was spent stays in the ledger
under the cap's key. So, when the owner changes the catalog:

- a raised budget has more left, a lowered one less; below what is spent it has nothing left and refuses;
- an analyst who is removed may not ask, and what she spent stays spent by the dataset and her groups; added
  again under the same name, she goes on where she was;
- a limit that the owner changed in the ledger itself (`steering`) is changed by as much again;
- a new name is a new analyst with nothing spent, inside the same dataset's total, which is what bounds all
  names together; the same holds for groups, which count what members spend while they are members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from incrowd.catalog import OWNER, SOLE_ANALYST, Catalog, Sharing
from incrowd.curator.ledger.chain import canonical, digest
from incrowd.errors import BudgetExceeded, InvalidInput, NotPermitted
from incrowd.privacy import Capacity, Guarantee, capacity
from incrowd.privacy.filters import THRESHOLD_SHARE

DATASET = "dataset"
# A cap per query is the owner's policy and no part of a promise, so an epsilon that was rounded outwards on
# its way (a Gaussian calibrated to 0.5 prints 0.5000000001) need not be refused for it.
_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class Cap:
    """One budget: its key in the ledger, its name in words, and its capacity in whole units."""

    key: str
    whose: str
    epsilon: float
    delta: float
    limit: Capacity
    daily: bool = False

    def terms(self) -> dict[str, object]:
        """What the ledger records of it; whole numbers as text, which every reader of JSON keeps."""
        return {
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta),
            "kind": self.limit.kind,
            "main": str(self.limit.main),
            "pure": str(self.limit.epsilon),
            "beside": str(self.limit.delta),
            "daily": self.daily,
        }


@dataclass(frozen=True)
class Caps:
    """Every cap of a catalog, and who is held by which.

    `holders` maps each analyst to the keys of her caps, the dataset's first; `query_caps` to the largest
    epsilon of one query and the delta at which it is read.
    """

    caps: Mapping[str, Cap]
    holders: Mapping[str, tuple[str, ...]]
    query_caps: Mapping[str, tuple[float, float]]
    groups: Mapping[str, frozenset[str]]
    sharing: Sharing = "own"
    threshold_share: float = float(THRESHOLD_SHARE)
    retired: Mapping[str, str] = field(default_factory=dict)
    """Analysts who may ask no more, and since when."""

    @classmethod
    def of(cls, catalog: Catalog) -> Caps:
        """The caps that the owner declares."""
        share = catalog.budget.threshold_share
        share = float(THRESHOLD_SHARE) if share is None else share

        def cap(key: str, whose: str, epsilon: float, delta: float, daily: bool = False) -> Cap:
            return Cap(key, whose, epsilon, delta, capacity(epsilon, delta, threshold_share=share), daily)

        total = catalog.budget
        caps = {DATASET: cap(DATASET, "The dataset's budget", total.epsilon, total.delta)}
        for name, group in catalog.groups.items():
            key = f"group:{name}"
            caps[key] = cap(key, f"The budget of group {name}", group.epsilon, catalog.delta_of(group))
        holders: dict[str, tuple[str, ...]] = {}
        query_caps: dict[str, tuple[float, float]] = {}
        for name, analyst in catalog.analysts.items():
            delta = catalog.delta_of(analyst)
            keys = [DATASET, *(f"group:{group}" for group in catalog.groups_of(name)), f"analyst:{name}"]
            caps[keys[-1]] = cap(keys[-1], f"The budget of analyst {name}", analyst.epsilon, delta)
            if analyst.per_day is not None:
                window = analyst.per_day
                day_delta = catalog.delta_of(window, analyst)
                keys.append(f"day:{name}")
                whose = f"Today's budget of analyst {name}"
                caps[keys[-1]] = cap(keys[-1], whose, window.epsilon, day_delta, daily=True)
            if analyst.max_epsilon is not None:
                query_caps[name] = (analyst.max_epsilon, delta)
            holders[name] = tuple(keys)
        return cls(
            caps=caps,
            holders={OWNER: (DATASET,), **holders} if holders else {SOLE_ANALYST: (DATASET,)},
            query_caps=query_caps,
            groups={name: frozenset(catalog.groups_of(name)) for name in catalog.analysts},
            sharing=catalog.sharing,
            threshold_share=share,
        )

    def held(self, analyst: str) -> tuple[Cap, ...]:
        """The caps that an analyst's asks must fit; NotPermitted for somebody who is none."""
        if analyst in self.retired:
            raise NotPermitted(
                f"The owner retired analyst {analyst} on {self.retired[analyst]}, and alone may undo that."
            )
        if analyst not in self.holders:
            raise NotPermitted(f"There is no analyst {analyst!r} in the catalog; the owner adds one there.")
        return tuple(self.caps[key] for key in self.holders[analyst])

    def check_query(self, analyst: str, guarantee: Guarantee) -> None:
        """Refuse a query whose epsilon alone is above the analyst's cap per query."""
        if analyst not in self.query_caps:
            return
        most, delta = self.query_caps[analyst]
        epsilon = guarantee.epsilon(delta)
        if not epsilon <= most * _SLACK:
            at = f" at delta {delta:g}" if delta else ""
            raise BudgetExceeded(
                f"Analyst {analyst} may spend at most epsilon {most:g} on one query, "
                f"but epsilon {epsilon:.6g}{at} was asked; ask for less.",
                asked=f"epsilon {epsilon:.6g}",
                left=f"epsilon {most:g}",
            )

    def key_of(self, whose: str) -> str:
        """The key of a cap, by itself or by an analyst's name; InvalidInput if there is none."""
        for key in (f"analyst:{whose}", whose):
            if key in self.caps:
                return key
        known = ", ".join(key.removeprefix("analyst:") for key in self.caps)
        raise InvalidInput(f"There is no budget of {whose!r}; choose from {known}.")

    def may_see(self, analyst: str, owner: str) -> bool:
        """Whether `analyst` gets the recorded answers of `owner`."""
        if analyst == owner or self.sharing == "all":
            return True
        mine, hers = self.groups.get(analyst, frozenset()), self.groups.get(owner, frozenset())
        return self.sharing == "group" and bool(mine & hers)

    @cached_property
    def terms(self) -> dict[str, Any]:
        """What a budget entry of the ledger records."""
        return {
            "caps": {key: cap.terms() for key, cap in self.caps.items()},
            "holders": {name: list(keys) for name, keys in self.holders.items()},
        }

    @cached_property
    def terms_hash(self) -> str:
        """Recognises the terms."""
        return digest(canonical(self.terms).encode("ascii"))
