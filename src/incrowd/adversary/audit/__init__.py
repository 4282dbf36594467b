"""Audits: what epsilon a mechanism has at least, proven from its outputs alone.

`audit` takes any callable, command line or HTTP address; `python -m incrowd.adversary.audit` runs it over the
deliberately broken mechanisms of `incrowd.adversary.mutants`, over every real one and over the curator.
"""

from incrowd.adversary.audit.auditor import Audit, Tested, audit
from incrowd.adversary.audit.neighbours import neighbours
from incrowd.adversary.audit.outputs import Failure
from incrowd.adversary.audit.runs import Batch, Command, Endpoint

__all__ = ["Audit", "Batch", "Command", "Endpoint", "Failure", "Tested", "audit", "neighbours"]
