"""Upper bounds on the success of any attack on a private release.

Let an attack see one release and say yes or no about one person's being in the data. Under (epsilon, delta),

    P(yes | in) <= e^epsilon P(yes | out) + delta      and so with in and out, and with yes and no, swapped

which bounds its true positives by its false positives (`most_hits`), and its success at guessing a secret
that is one of k equally likely values (`most_success`). Both are tight for pure epsilon: randomized response
attains them.

Many secrets from one release (Steinke, Nasr, Jagielski 2023). Let n people's secrets be independent and
equally likely, and the release purely epsilon-private for each. Given the release and all others' secrets,
the odds of one person's two secrets are within e^epsilon, so each guess is right with probability at most
`most_success(epsilon)`, whatever came of the other guesses. The number of right guesses is therefore
stochastically at most binomial, and a Clopper-Pearson interval of their share accuses no private release by
more than its stated chance, although the guesses are not independent.
"""

from __future__ import annotations

import math

from incrowd.errors import InvalidInput


def _checked(epsilon: float, delta: float) -> None:
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise InvalidInput("A guarantee needs epsilon of 0 or more and delta between 0 and 1.")


def most_success(epsilon: float, delta: float = 0.0, choices: int = 2) -> float:
    """The highest probability with which one of `choices` equally likely secrets is guessed.

    Let P_j be the release under secret j and g the guess. For i other than j,
    P_j(g = j) <= e^epsilon P_i(g = j) + delta; summed over all such i and j, with S = sum_j P_j(g = j) and k
    choices, this reads (k - 1) S <= e^epsilon (k - S) + k (k - 1) delta, and the success is S / k.

    >>> round(most_success(1.0), 4), most_success(0.0), most_success(0.0, choices=4)
    (0.7311, 0.5, 0.25)
    """
    _checked(epsilon, delta)
    if choices < 1:
        raise InvalidInput(f"A secret is one of at least one choice, not of {choices}.")
    if epsilon > 700:
        return 1.0
    factor = math.exp(epsilon)
    return min(1.0, (factor + (choices - 1) * delta) / (factor + choices - 1))


def most_hits(false_positives: float, epsilon: float, delta: float = 0.0) -> float:
    """The highest true-positive rate of any test with this false-positive rate.

    >>> most_hits(0.0, 1.0), round(most_hits(0.1, 1.0), 4), most_hits(1.0, 1.0)
    (0.0, 0.2718, 1.0)
    """
    _checked(epsilon, delta)
    if not 0 <= false_positives <= 1:
        raise InvalidInput("A rate of false positives lies between 0 and 1.")
    if epsilon > 700:
        return 1.0
    factor = math.exp(epsilon)
    # 1 - (1 - false_positives - delta) / factor, without the loss of digits.
    by_misses = (math.expm1(epsilon) + false_positives + delta) / factor
    return min(1.0, factor * false_positives + delta, by_misses)
