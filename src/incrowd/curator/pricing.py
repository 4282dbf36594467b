"""The price of a plan: how its epsilon and delta are split among what it releases, before any row is read.

A leaf releases, in this order: where values lie, where balls are centred; a census of unit weights where a
cap must be chosen; the weights of private keys against a threshold, unless a count of units decides which
groups are shown; grand totals from which shrinkage is undone; noisy sums; quantiles. Each is one line of the
price. The lines of all leaves together are one fixed plan: their privacy parameters do not depend on any
answer, so the guarantee of the whole is the composition of the lines' events.

Noise on sums is Laplace with the leaf's epsilon shared out, or Gaussian with the same (epsilon, delta)
shared out by squares, whichever is narrower.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from incrowd.curator.caveats import caveats
from incrowd.curator.contribution import total_cap
from incrowd.curator.level_shares import level_shares
from incrowd.curator.lineage import origins
from incrowd.curator.prices import LEAST_SHARE, Line, LineKind, Noise, Price
from incrowd.curator.quantiles import TREE_ALONE, levels_of, shares_of
from incrowd.curator.quantities import caps_of
from incrowd.curator.showing import key_selection, sentences
from incrowd.errors import InvalidInput, QueryError
from incrowd.noise.readings import shown
from incrowd.privacy import gaussian
from incrowd.privacy.amounts import read
from incrowd.privacy.gdp import largest_mu
from incrowd.query import Leaf, Measure, Plan
from incrowd.query.levels import families
from incrowd.query.plan import FEW_SHOWN

FEW_GROUPS = 8
"""From this many groups per unit on, L2 with Gaussian noise beats L1 with Laplace noise."""
SCALED_GROUPS = 25
"""With fewer listed groups, the noise of two totals outweighs what scaling sums back up would gain."""
_SHARE: Mapping[str, float] = {"keys": 1.0, "totals": 0.1, "centre": 0.3}
_CENSUS: Mapping[str, float] = {"total": 0.54, "groups": 0.15, "rank": 0.15, "joint": 0.3}
"""What a census gets for each 1 of a sum. One sum over all rows depends most on a good cap."""
_PARTS: Mapping[str, tuple[float, ...]] = {
    "count": (1.0,),
    "sum": (1.0,),
    "avg": (0.6, 0.4),
    "var": (0.25, 0.5, 0.25),
    "covar": (0.25, 0.25, 0.3, 0.2),
    "corr": (0.15, 0.15, 0.2, 0.2, 0.2, 0.1),
    "r2": (0.15, 0.15, 0.2, 0.2, 0.2, 0.1),
    "slope": (0.2, 0.2, 0.2, 0.25, 0.15),
    "intercept": (0.2, 0.2, 0.2, 0.25, 0.15),
    "ratio": (0.6, 0.4),
    "distinct": (0.5, 0.5),
    "sxx": (0.25, 0.5, 0.25),
    "sxy": (0.25, 0.25, 0.3, 0.2),
    "quantile": (1.0,),
}


def few_groups(leaf: Leaf) -> bool:
    """Whether a leaf has no groups, or so few that its sums are not scaled back up."""
    return not leaf.keys or leaf.listed_groups < SCALED_GROUPS


def rescales(leaf: Leaf, measure: Measure, rescale: bool) -> bool:
    """Whether shrinkage is undone for a measure: a sum or count by many groups whose cap is chosen privately.

    In L2 hardly anything is cut, so there is nothing to undo.
    """
    users = [aggregate for aggregate in leaf.aggregates if measure.name in aggregate.measures]
    linear = all(aggregate.kind in ("count", "sum") for aggregate in users)
    return (
        rescale
        and linear
        and not few_groups(leaf)
        and measure.cap is None
        and not measure.buckets
        and measure.norm == 1
    )


def in_best_norm(plan: Plan, delta: float) -> Plan:
    """Bound each unit's groups in L2 where Gaussian noise would be narrower (needs delta > 0)."""
    if not delta:
        return plan
    leaves = []
    for leaf in plan.leaves:
        if leaf.totals is not None:
            # Levels add up what is bounded in L1.
            leaves.append(leaf)
            continue
        pairs = [measure for measure in leaf.measures.values() if measure.level == "pair"]
        caps = [measure.cap for measure in pairs if measure.value is None]
        few = FEW_GROUPS if leaf.shown_by is None else FEW_SHOWN + 1
        many = any(cap is None or cap >= few for cap in caps)
        many |= any(measure.ball for measure in pairs) and leaf.listed_groups >= FEW_GROUPS
        weighed = not leaf.public and leaf.shown_by is None
        spread = bool(leaf.units) and bool(leaf.keys) and (many or weighed)
        leaves.append(leaf.in_l2() if spread else leaf)
    return replace(plan, leaves=tuple(leaves))


def price(
    plan: Plan, epsilon: float, delta: float, *, confidence: float = 0.95, rescale: bool = True
) -> Price:
    """Split (epsilon, delta) over the plan's releases."""
    if not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise InvalidInput(f"epsilon must be a positive number, not {shown(epsilon)}.")
    if not (isinstance(delta, int | float) and 0 <= delta < 1):
        raise InvalidInput(f"delta must be a number from 0 up to but not including 1, not {shown(delta)}.")
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence must lie between 0 and 1, not {shown(confidence)}.")
    if not delta and any(leaf.norm == 2 for leaf in plan.leaves):
        raise InvalidInput("This plan was bounded for a delta above 0; bound it again with delta=0.")
    lines: list[Line] = []
    # As everywhere in accounting, a float stands for its shortest decimal: 0.1 is one tenth.
    own = {index: leaf for index, leaf in enumerate(plan.leaves) if not leaf.adds_up(index)}
    share, part = read(epsilon, "epsilon") / len(own), read(delta, "delta") / len(own)
    levels = families(plan.leaves)
    for index, leaf in own.items():
        stacked = {level: plan.leaves[level] for level in levels.get(index, [])}
        lines += _over_levels(_leaf_lines(index, leaf, share, part, rescale), stacked)
    _refuse_too_little(lines, epsilon)
    stated = float(sum((line.delta for line in lines), Fraction(0)))
    spent = delta if any(line.noise == "gaussian" for line in lines) else stated
    known = _with_known_caps(plan, lines)
    widths = _halfwidths(known, lines, confidence)
    # What is public altogether, such as the values of a declared domain, costs nothing.
    cost = float(epsilon) if lines else 0.0
    notes = (*caveats(plan), *sentences(plan, lines))
    return Price(cost, spent, tuple(lines), widths, confidence, notes, caps_of(known))


def shared_price(plan: Plan, mu: float, epsilon: Fraction, delta: float, confidence: float) -> Price:
    """The price of one step of a grant: all of its strength, shared over the sums of a plan of one leaf.

    Gaussian noise of mu_1, mu_2, ... on each sum is together Gaussian noise of sqrt(mu_1^2 + mu_2^2 + ...);
    Laplace noise of epsilon_1, epsilon_2, ... keeps their sum.
    """
    (leaf,) = plan.leaves
    weights: dict[str, Fraction] = {}
    for aggregate in leaf.aggregates:
        for name, part in zip(aggregate.measures, _PARTS[aggregate.kind], strict=True):
            weights[name] = weights.get(name, Fraction(0)) + Fraction(part)
    total = sum(weights.values(), Fraction(0))
    lines = []
    for name, weight in weights.items():
        label = leaf.measures[name].label
        if mu:
            own = mu * math.sqrt(weight / total) * (1 - 2.0**-50)
            lines.append(Line(0, "sum", name, label, "gaussian", mu=own))
        else:
            lines.append(Line(0, "sum", name, label, "laplace", epsilon * weight / total))
    whole = gaussian(mu).epsilon(delta) if mu else float(epsilon)
    _refuse_too_little(lines, whole)
    return Price(
        whole,
        delta if mu else 0.0,
        tuple(lines),
        _halfwidths(plan, lines, confidence),
        confidence,
        caveats(plan),
        caps_of(plan),
    )


def _refuse_too_little(lines: list[Line], epsilon: float) -> None:
    """Noise too wide to be drawn must be noticed here: later, whether it is drawn may depend on the data."""
    least = min((line.least for line in lines), default=LEAST_SHARE)
    if least < LEAST_SHARE:
        raise InvalidInput(
            f"epsilon {epsilon:g} is too little for {len(lines)} releases: ask for at least "
            f"{epsilon * LEAST_SHARE / least * 1.01:.2g}."
        )


def _leaf_lines(index: int, leaf: Leaf, epsilon: Fraction, delta: Fraction, rescale: bool) -> list[Line]:
    weights: dict[tuple[LineKind, str], float] = {}
    labels: dict[tuple[LineKind, str], str] = {}

    def add(kind: LineKind, target: str, weight: float, label: str) -> None:
        key = (kind, target)
        weights[key] = weights.get(key, 0.0) + weight if kind != "quantile" else weight
        labels.setdefault(key, label)

    for name, value in leaf.values.items():
        add("centre", name, _SHARE["centre"], value.histogram.label)
    for weigh, measure in leaf.uncapped.items():
        add(
            "census", weigh, _census_weight(leaf, weigh), f"how much each unit contributes to {measure.label}"
        )
    if not leaf.public:
        if delta == 0:
            private = ", ".join(key.label for key in leaf.keys if not key.public)
            raise QueryError(
                f"The values of {private} are not public, so releasing them costs delta: ask with a delta "
                "above 0, have the owner declare a domain, or list the values with WHERE "
                f"{private.split(',')[0]} IN (...)."
            )
        if leaf.shown_by is None:
            add("keys", "keys", _SHARE["keys"], "which groups may be shown")
    for name, measure in leaf.measures.items():
        if rescales(leaf, measure, rescale):
            add("totals", name, _SHARE["totals"], f"the total that undoes the shrinking of {measure.label}")
    for aggregate in leaf.aggregates:
        kind: LineKind = "quantile" if aggregate.kind == "quantile" else "sum"
        for name, weight in zip(aggregate.measures, _PARTS[aggregate.kind], strict=True):
            add(kind, leaf.measures[name].line, weight, leaf.measures[name].label)
    total = Fraction(sum(Fraction(weight) for weight in weights.values()))
    parts = {key: epsilon * Fraction(weight) / total for key, weight in weights.items()}
    mus, keys_delta = _gaussian_mus(leaf, parts, delta)
    lines = []
    for key, part in parts.items():
        kind, target = key
        deciding = kind == "keys" or key == ("sum", leaf.shown_by)
        own_delta = keys_delta if deciding else Fraction(0)
        if key in mus:
            lines.append(Line(index, kind, target, labels[key], "gaussian", mu=mus[key], delta=own_delta))
        else:
            noise: Noise = "exponential" if kind == "centre" else "laplace"
            levels, mu, shares = 1, 0.0, TREE_ALONE
            if deciding and kind == "sum":
                noise = "thresholded"
                if leaf.measures[target].norm == 2:
                    mu = _shared_mu({key: part}, own_delta / 2)[key]
            if kind == "quantile":
                shares = shares_of(leaf.ranks(target), leaf.keeps_trees)
                noise = "exponential" if shares.points else "laplace"
                levels = levels_of(leaf.measures[target].buckets)
            if kind == "keys" and not leaf.units:
                noise = "selection"
                key_selection(part, own_delta, leaf.distance)  # refuses what it cannot hold before paying
            lines.append(Line(index, kind, target, labels[key], noise, part, mu, own_delta, levels, shares))
    return lines


def _over_levels(lines: list[Line], levels: Mapping[int, Leaf]) -> list[Line]:
    """The lines of a leaf, with each sum shared among the levels that add it up, by their numbers."""
    if not levels:
        return lines
    spread = []
    for line in lines:
        if line.kind != "sum":
            spread.append(line)
            continue
        shares = level_shares(list(levels.values()), line.noise == "gaussian")
        for level, share in zip(levels, shares, strict=True):
            if share:
                mu = line.mu * math.sqrt(share) * (1 - 2.0**-50)
                spread.append(replace(line, leaf=level, epsilon=line.epsilon * share, mu=mu))
    return spread


def _census_weight(leaf: Leaf, weigh_key: str) -> float:
    if leaf.uncapped[weigh_key].ball:
        return _CENSUS["joint"]
    if not _linear(leaf, _sharing(leaf, weigh_key)):
        return _CENSUS["rank"]
    return _CENSUS["groups" if leaf.keys else "total"]


def _sharing(leaf: Leaf, weigh_key: str) -> set[str]:
    """The measures that share a cap."""
    return {measure.name for measure in leaf.measures.values() if measure.weigh_key == weigh_key}


def _linear(leaf: Leaf, names: set[str]) -> bool:
    """True if a count or a sum is made of one of the measures."""
    return any(
        aggregate.kind in ("count", "sum") and names & set(aggregate.measures)
        for aggregate in leaf.aggregates
    )


def _with_known_caps(plan: Plan, lines: Sequence[Line]) -> Plan:
    """The plan with the caps of sums over all rows that follow from a census bought before."""
    leaves = []
    for index, leaf in enumerate(plan.leaves):
        caps = {}
        for weigh_key, measure in leaf.open_caps.items():
            names = _sharing(leaf, weigh_key)
            if measure.census is None or leaf.keys or leaf.adds_up(index) or not _linear(leaf, names):
                continue
            epsilon = min(line.epsilon_like for line in lines if line.leaf == index and line.target in names)
            caps[weigh_key] = total_cap(measure, epsilon, leaf.distance)
        measures = {
            name: measure.capped(caps[measure.weigh_key]) if measure.weigh_key in caps else measure
            for name, measure in leaf.measures.items()
        }
        leaves.append(replace(leaf, measures=measures))
    return replace(plan, leaves=tuple(leaves))


def _gaussian_mus(
    leaf: Leaf, parts: Mapping[tuple[LineKind, str], Fraction], delta: Fraction
) -> tuple[dict[tuple[LineKind, str], float], Fraction]:
    """The mu of each line that gets Gaussian noise, and the delta that is left for the threshold of keys.

    What is bounded in L2 gets it in any case; the other sums if that makes the noise of all of them
    narrower than Laplace noise at the same (epsilon, delta).
    """
    keys_delta = Fraction(0) if leaf.public else delta
    sums = [key for key in parts if key[0] == "sum" and not _thresholded(leaf, key[1])]
    forced = [key for key in sums if leaf.released_by(key[1]).norm == 2]
    forced += [key for key in parts if key[0] == "keys" and leaf.norm == 2]
    if not delta or not sums + forced:
        return {}, keys_delta
    slack = delta / 2 if keys_delta else delta
    choices = [forced, list(dict.fromkeys(sums + forced))]
    shared = [_shared_mu({key: parts[key] for key in chosen}, slack) for chosen in choices]
    spread = [
        sum(-math.log(mus[key]) if key in mus else math.log(math.sqrt(2) / parts[key]) for key in choices[1])
        for mus in shared
    ]
    best = shared[1] if spread[1] < spread[0] else shared[0]
    return best, keys_delta - slack if keys_delta and best else keys_delta


def _thresholded(leaf: Leaf, measure: str) -> bool:
    """True for a count that decides which groups are shown and whose cap is small, or is not known yet."""
    return measure == leaf.shown_by and (
        leaf.measures[measure].norm == 1 or leaf.measures[measure].cap is None
    )


def _shared_mu(
    parts: Mapping[tuple[LineKind, str], Fraction], delta: Fraction
) -> dict[tuple[LineKind, str], float]:
    """The mu of each line if together they are (their epsilon, delta): squares of mu share like epsilon."""
    total = sum(parts.values(), Fraction(0))
    if not parts:
        return {}
    mu = largest_mu(float(total) * (1 - 2.0**-50), float(delta) * (1 - 2.0**-50))
    return {key: mu * math.sqrt(part / total) * (1 - 2.0**-50) for key, part in parts.items()}


def _halfwidths(plan: Plan, lines: list[Line], confidence: float) -> dict[str, float | None]:
    """By the answer's columns: known for a count or sum whose cap is known, as it is or passed on."""
    widths: dict[str, float | None] = {}
    for name, origin in origins(plan).items():
        widths[name] = None
        if origin is None:
            continue
        index, aggregate = origin
        leaf = plan.leaves[index]
        measure = leaf.measures[aggregate.measures[0]]
        if aggregate.kind in ("count", "sum") and measure.cap is not None:
            asked = (index, "sum", measure.name)
            line = next(line for line in lines if (line.leaf, line.kind, line.target) == asked)
            mechanism = line.mechanism(measure, leaf.distance)
            widths[name] = float(mechanism.halfwidth(confidence)) * measure.step
    return widths
