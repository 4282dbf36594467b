"""Deliberately broken mechanisms, one for each known class of bug: what an auditor must catch.

Each has a name, one sentence on what is wrong, the guarantee that it claims, and two neighbours that show it.
They protect nobody. Real mechanisms are in `incrowd.mechanisms`.
"""

from incrowd.adversary.audit.case import Case
from incrowd.adversary.mutants import constants, data, drawing, sparse, spending
from incrowd.adversary.mutants import wrong_keys as keys
from incrowd.adversary.mutants import wrong_sensitivity as sensitivity

MUTANTS: tuple[Case, ...] = (
    *sensitivity.MUTANTS,
    *drawing.MUTANTS,
    *sparse.MUTANTS,
    *keys.MUTANTS,
    *data.MUTANTS,
    *spending.MUTANTS,
    *constants.MUTANTS,
)

__all__ = ["MUTANTS"]
