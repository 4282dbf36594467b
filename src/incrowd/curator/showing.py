"""How private groups come to be shown: the noise and the threshold of a price's line, and what that hides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from incrowd.backends.statement import KEY_MASS
from incrowd.curator.selected import Selected
from incrowd.curator.thresholds import count_threshold_for, gaussian_tail, laplace_tail, threshold_for
from incrowd.mechanisms import Gaussian, Laplace, PartitionSelection, TruncatedLaplace
from incrowd.query import Leaf, Plan

if TYPE_CHECKING:
    from incrowd.curator.prices import Line
    from incrowd.curator.released import Released

WIDER = 1 + Fraction(1, 2**26)
USUALLY = 0.95


@dataclass(frozen=True)
class Decision:
    """A noisy number of at least `least` shows its group; the noise is at most `bound`, if there is one."""

    mechanism: Laplace | Gaussian | TruncatedLaplace
    least: int
    bound: int | None = None

    def in_units(self, one: float) -> Selected:
        """The same in units, each of which adds `one` to the number."""
        kind = "gaussian" if isinstance(self.mechanism, Gaussian) else "laplace"
        bound = math.inf if self.bound is None else self.bound / one
        return Selected(kind, self.mechanism.noise_scale / one, self.least / one, bound)


def by_count(leaf: Leaf, line: Line) -> Decision:
    """The decision of the leaf's own count of units, whose cap is known."""
    assert leaf.shown_by is not None
    measure = leaf.measures[leaf.shown_by]
    mechanism = line.mechanism(measure, leaf.distance)
    if isinstance(mechanism, TruncatedLaplace):
        return Decision(mechanism, mechanism.bound + 1, mechanism.bound)
    tail = gaussian_tail(mechanism.noise_scale)
    return Decision(mechanism, count_threshold_for(tail, line.threshold_delta, leaf.distance, measure))


def by_weights(leaf: Leaf, line: Line) -> Decision:
    """The decision of the weights of keys."""
    mass = KEY_MASS * leaf.distance
    if line.noise == "gaussian":
        wide = Gaussian(scale=Fraction(mass) / Fraction(line.mu) * WIDER, sensitivity=mass)
        return Decision(wide, threshold_for(gaussian_tail(wide.noise_scale), line.delta, leaf.distance, 2))
    tail = laplace_tail(float(mass / line.epsilon))
    least = threshold_for(tail, line.delta, leaf.distance, leaf.norm)
    return Decision(Laplace(line.epsilon, sensitivity=mass), least)


def key_selection(epsilon: Fraction, delta: Fraction, distance: int) -> PartitionSelection:
    """The optimal choice of private keys where a unit is in one group: each row is a unit of its own."""
    return PartitionSelection(epsilon, delta, relation="add-remove" if distance == 1 else "replace")


def shown_sizes(leaf: Leaf, line: Line) -> tuple[int, int]:
    """The numbers of units with which a group is shown half of the time, and USUALLY."""
    if line.noise == "selection":
        selection = key_selection(line.epsilon, line.delta, leaf.distance)
        return selection.halfwidth(0.5), selection.halfwidth(USUALLY)
    if line.kind == "keys":
        selected = by_weights(leaf, line).in_units(KEY_MASS)
    else:
        assert leaf.shown_by is not None
        selected = by_count(leaf, line).in_units(leaf.measures[leaf.shown_by].limit_steps)
    half, usual = (math.ceil(selected.size_for(chance) - 1e-6) for chance in (0.5, USUALLY))
    return half, usual


def sentences(plan: Plan, lines: Sequence[Line], released: Sequence[Released] | None = None) -> list[str]:
    """What is said about groups that are hidden: before a release, or after it."""
    said = []
    for index, leaf in enumerate(plan.leaves):
        if leaf.public or leaf.adds_up(index):
            continue
        known = leaf if released is None else released[index].known(leaf)
        target = ("sum", leaf.shown_by) if leaf.shown_by is not None else ("keys", "keys")
        (line,) = (line for line in lines if (line.leaf, line.kind, line.target) == (index, *target))
        said.append(_sentence(known, line))
    return said


def _sentence(leaf: Leaf, line: Line) -> str:
    if leaf.shown_by is not None and leaf.measures[leaf.shown_by].cap is None:
        return "Small groups are hidden; below which size is known with the answer."
    half, usual = shown_sizes(leaf, line)
    text = (
        f"Small groups are hidden: one of fewer than {half:,} units at least half of the time; one of "
        f"{usual:,} is shown {USUALLY:.0%} of the time."
    )
    if line.kind == "keys" and leaf.units:
        return text + " A unit in several groups counts for less in each."
    if leaf.shown_by is not None and leaf.measures[leaf.shown_by].norm == 2:
        return (
            text + f" A unit in more than {leaf.measures[leaf.shown_by].most_groups:,} groups counts in none."
        )
    return text
