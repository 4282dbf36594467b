"""The price of a request: which epsilon it means, and how that is spent."""

from __future__ import annotations

from dataclasses import replace

from incrowd.catalog import Catalog
from incrowd.curator.ends import with_ends
from incrowd.curator.expecting import expected
from incrowd.curator.preparing import Prepared, chosen_delta
from incrowd.curator.prices import Price
from incrowd.curator.pricing import price
from incrowd.errors import InvalidInput, NotPermitted, QueryError
from incrowd.noise.readings import shown
from incrowd.privacy.amounts import read

NEAREST = 1 + 1e-6
"""The cheapest epsilon for an accuracy is found up to this factor."""
PILOTS = 10
"""A pilot gets one part in so many of the most that may be spent."""


def price_of(question: Prepared, catalog: Catalog) -> Price:
    """What a question costs and how wrong its answer would be; what would be left is not known here.

    Where only a pilot can say which epsilon is accurate enough, it is the most that both may cost.
    """
    if question.request.within is None:
        asked = _asked(question, catalog)
        return priced(question, catalog, catalog.default_epsilon if asked is None else asked)
    pilot = piloted(question, catalog)
    return _cheapest(question, catalog) if pilot is None else _of_both(pilot, catalog)


def priced(question: Prepared, catalog: Catalog, epsilon: float) -> Price:
    """The price of a question at an epsilon, with what can be said about widths that depend on the data."""
    cost = _at(question, catalog, epsilon)
    return replace(cost, expected=expected(question.plan, cost, question.groups))


def _at(question: Prepared, catalog: Catalog, epsilon: float) -> Price:
    request = question.request
    confidence = catalog.defaults.confidence if request.confidence is None else request.confidence
    delta = chosen_delta(question.plan, request, catalog)
    return price(question.plan, epsilon, delta, confidence=confidence, rescale=request.rescale)


def piloted(question: Prepared, catalog: Catalog) -> tuple[Prepared, Prepared] | None:
    """The question at the price of a pilot, and at the most that is left then; None if it needs no pilot.

    It needs one if `within` is asked of numbers whose half-widths depend on the data. Epsilon and delta are
    shared out, so that both together cost no more than was allowed.
    """
    request = question.request
    if request.within is None:
        return None
    _refuse_odd_error(request.within)
    asked = _asked(question, catalog)
    most = catalog.default_epsilon if asked is None else asked
    widths = _at(question, catalog, most).halfwidths
    if widths and all(width is not None for width in widths.values()):
        return None
    if not _has_ends(question):
        raise QueryError(
            "within= needs a number with an interval, and this question has none: say epsilon= instead.",
            arguments=("within", "epsilon"),
        )
    delta = chosen_delta(question.plan, request, catalog)

    def at(parts: int) -> Prepared:
        epsilon, own_delta = (
            float(read(amount, name) * parts / PILOTS)
            for amount, name in ((most, "epsilon"), (delta, "delta"))
        )
        return replace(question, request=replace(request, within=None, epsilon=epsilon, delta=own_delta))

    return at(1), at(PILOTS - 1)


def _of_both(steps: tuple[Prepared, Prepared], catalog: Catalog) -> Price:
    """The most that a pilot and what follows it may cost."""
    try:
        pilot, rest = (price_of(step, catalog) for step in steps)
    except InvalidInput as error:
        raise InvalidInput(
            f"A pilot with a tenth of epsilon would have to say what within= costs, but {_lower(str(error))}"
        ) from None
    lines = [replace(line, label=f"{line.label}, in the pilot") for line in pilot.lines]
    note = (
        f"A pilot of epsilon {pilot.epsilon:g} comes first: it is the answer if it is accurate enough, and "
        f"else says which epsilon is, of which at most {rest.epsilon:g} is spent; half-widths here are for "
        "that."
    )
    return replace(
        rest,
        epsilon=float(read(pilot.epsilon, "epsilon") + read(rest.epsilon, "epsilon")),
        delta=float(read(pilot.delta, "delta") + read(rest.delta, "delta")),
        lines=(*lines, *rest.lines),
        notes=(note, *rest.notes),
        steps=(pilot, rest),
    )


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _cheapest(question: Prepared, catalog: Catalog) -> Price:
    """The price at the least epsilon whose half-widths, all known beforehand, are within the error."""
    within, most = question.request.within, _asked(question, catalog) or catalog.budget.epsilon
    assert within is not None

    def widest(epsilon: float) -> float:
        widths = _at(question, catalog, epsilon).halfwidths
        return max(width for width in widths.values() if width is not None)

    if widest(most) > within:
        confidence = _at(question, catalog, most).confidence
        raise NotPermitted(
            f"Answers within {within:g} at {confidence:.0%} confidence would need an epsilon above "
            f"{most:g}; accept a larger error."
        )

    def accurate(epsilon: float) -> bool:
        try:
            return widest(epsilon) <= within
        except InvalidInput:  # The request is valid at `most`, so this epsilon is too little to be drawn.
            return False

    low, high = most * 1e-9, most
    while high / low > NEAREST:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if accurate(middle) else (middle, high)
    return priced(question, catalog, high)


def _has_ends(question: Prepared) -> bool:
    """True if some column of the answer has an interval."""
    names = {column.alias_or_name for column in with_ends(question.plan).selects}
    return any({f"{name}_low", f"{name}_high"} <= names for name in question.plan.columns)


def _refuse_odd_error(within: object) -> None:
    if not (isinstance(within, int | float) and 0 < within < float("inf")):
        raise InvalidInput(f"within must be a positive number, not {shown(within)}.")


def _asked(question: Prepared, catalog: Catalog) -> float | None:
    """The epsilon that the request or its SQL names."""
    request = question.request
    epsilon = question.plan.options.get("epsilon") if request.epsilon is None else request.epsilon
    if epsilon is None:
        return None
    if not (isinstance(epsilon, int | float) and 0 < epsilon < float("inf")):
        raise InvalidInput(f"epsilon must be a positive number, not {shown(epsilon)}.")
    if epsilon > catalog.budget.epsilon:
        raise NotPermitted(
            f"epsilon {epsilon:g} is above the dataset's whole budget of "
            f"{catalog.budget.epsilon:g}; ask for less."
        )
    return float(epsilon)
