"""The moment function of each event's privacy loss, M(t) = E_P exp(t * loss), for real and complex t.

Every formula here is for t with real part c >= 0 and is written so that nothing overflows: the largest
exponential is taken out as exp(t * epsilon), and what remains has modulus at most 2. Composition multiplies
moments, so it adds what this module returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.privacy import events
from incrowd.privacy.amounts import float_up

Floats = NDArray[np.floating[Any]]
Values = NDArray[np.complexfloating[Any, Any]]
Numbers = NDArray[Any]
"""Floats or complex values at the nodes."""


def bounded_part(event: events.Event) -> tuple[float, str, int] | None:
    """(epsilon, family, size) of events whose loss lies in [-epsilon, epsilon] and has a closed form."""
    match event:
        case events.Pure() | events.Approximate():
            return float_up(event.epsilon), "chain", 1
        case events.DiscreteLaplace():
            return float_up(event.epsilon), "chain", event.steps
        case events.Laplace():
            return float_up(event.epsilon), "laplace", 0
        case events.RandomizedResponse():
            return float_up(event.epsilon), "categories", event.categories
        case _:
            return None


def reduced_moment(epsilon: float, family: str, size: int, t: Numbers) -> Numbers:
    """M(t) / exp(t * epsilon) for a bounded loss.

    chain of s steps, x = epsilon / s, r = e^-x:
        (1 + E + (1 - r)(F - E) / (1 - F)) / (1 + r),   E = exp(-(2t + 1) epsilon), F = exp(-(2t + 1) x)
    laplace, the limit of many steps:
        (1 + E + (1 - E) / (2t + 1)) / 2
    k categories:
        (e^epsilon + (k - 2) exp(-t epsilon) + exp(-2 t epsilon)) / (e^epsilon + k - 1)
    """
    if family == "categories":
        turn = np.exp(-t * epsilon)
        low = np.exp(-epsilon)
        share: Numbers = (1 + low * ((size - 2) * turn + turn * turn)) / (1 + low * (size - 1))
        return share
    end = np.exp(-(2 * t + 1) * epsilon)
    if family == "laplace":
        laplace: Numbers = (1 + end + (1 - end) / (2 * t + 1)) / 2
        return laplace
    step = epsilon / size
    if size == 1:
        plain: Numbers = (1 + end) / (1 + np.exp(-step))
        return plain
    turn = np.exp(-(2 * t + 1) * step)
    inner = -np.expm1(-step) * (turn - end) / -np.expm1(-(2 * t + 1) * step)
    chain: Numbers = (1 + end + inner) / (1 + np.exp(-step))
    return chain
