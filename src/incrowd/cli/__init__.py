"""The command line: a thin face over the curator, the catalog and the explanations.

Exit status: 0 done, 1 refused (budget, permission), 2 wrong input. An error is one sentence on standard
error.
"""

from incrowd.cli.entry import main

__all__ = ["main"]
