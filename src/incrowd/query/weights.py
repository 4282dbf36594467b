"""What is known about how much units weigh."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Census:
    """How much units weigh, as the owner bought it beforehand: noisy, public, and no promise.

    cap: the most that one unit is to count for. units: about how many units weigh up to `up_to`, up to twice
    that, and so on; the last of them, how many weigh more. epsilon: what the noise of each keeps.
    """

    cap: float
    up_to: float
    units: tuple[int, ...]
    epsilon: float
