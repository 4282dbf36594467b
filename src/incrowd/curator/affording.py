"""The price of a request: which epsilon it means, and how that is spent."""

from __future__ import annotations

from incrowd.catalog import Catalog
from incrowd.curator.preparing import Prepared, chosen_delta
from incrowd.curator.pricing import Price, price
from incrowd.errors import InvalidInput, NotPermitted, QueryError

NEAREST = 1 + 1e-6
"""The cheapest epsilon for an accuracy is found up to this factor."""


def price_of(question: Prepared, catalog: Catalog) -> Price:
    """What a question costs and how wrong its answer would be; what would be left is not known here."""
    request = question.request
    confidence = catalog.defaults.confidence if request.confidence is None else request.confidence
    delta = chosen_delta(question.plan, request, catalog)

    def priced(epsilon: float) -> Price:
        return price(question.plan, epsilon, delta, confidence=confidence, rescale=request.rescale)

    epsilon = _asked(question, catalog)
    if request.within is None:
        return priced(catalog.default_epsilon if epsilon is None else epsilon)

    def widest(epsilon: float) -> float:
        widths = priced(epsilon).halfwidths
        if not widths or any(width is None for width in widths.values()):
            raise QueryError(
                "within= needs counts or sums whose contribution per unit is declared: say epsilon= "
                "instead, or contribution= for the number of rows that one unit counts for.",
                arguments=("within", "epsilon", "contribution"),
            )
        return max(width for width in widths.values() if width is not None)

    within, most = request.within, epsilon or catalog.budget.epsilon
    if not (isinstance(within, int | float) and 0 < within < float("inf")):
        raise InvalidInput(f"within must be a positive number, not {within!r}.")
    if widest(most) > within:
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
    return priced(high)


def _asked(question: Prepared, catalog: Catalog) -> float | None:
    """The epsilon that the request or its SQL names."""
    request = question.request
    epsilon = question.plan.options.get("epsilon") if request.epsilon is None else request.epsilon
    if epsilon is None:
        return None
    if not (isinstance(epsilon, int | float) and 0 < epsilon < float("inf")):
        raise InvalidInput(f"epsilon must be a positive number, not {epsilon!r}.")
    if epsilon > catalog.budget.epsilon:
        raise NotPermitted(
            f"epsilon {epsilon:g} is above the dataset's whole budget of "
            f"{catalog.budget.epsilon:g}; ask for less."
        )
    return float(epsilon)
