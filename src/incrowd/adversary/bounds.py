"""What a guarantee leaves to the best attacker: the success that no attack on a private release can exceed.

Let an attack see one release and say yes or no about one person's being in the data. Under (epsilon, delta),

    P(yes | in) <= e^epsilon P(yes | out) + delta      and so with in and out, and with yes and no, swapped

which bounds its true positives by its false positives (`most_hits`), and its success at guessing a secret
that is one of k equally likely values (`most_success`). Both are tight for pure epsilon: randomized response
attains them.
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
    if epsilon > 700:
        return 1.0
    factor = math.exp(epsilon)
    return min(1.0, (factor + (choices - 1) * delta) / (factor + choices - 1))


def most_hits(false_positives: float, epsilon: float, delta: float = 0.0) -> float:
    """The highest rate of true positives of a test whose rate of false positives is given.

    >>> most_hits(0.0, 1.0), round(most_hits(0.1, 1.0), 4), most_hits(1.0, 1.0)
    (0.0, 0.2718, 1.0)
    """
    _checked(epsilon, delta)
    if epsilon > 700:
        return 1.0
    factor = math.exp(epsilon)
    return min(1.0, factor * false_positives + delta, 1 - (1 - false_positives - delta) / factor)
