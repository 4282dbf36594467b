"""How much a run of the tests tries: a sample of every property in `make test`, all of it in `make sweep`."""

from __future__ import annotations

import os

WHOLE = "INCROWD_SWEEP" in os.environ


def sized(sample: int, whole: int) -> int:
    """How many examples of a property this run tries."""
    return whole if WHOLE else sample
