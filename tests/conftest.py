"""How property tests run: never against the clock; the same examples each time where a run decides (CI)."""

import os

from hypothesis import settings

settings.register_profile("exploring", deadline=None)
settings.register_profile("deciding", deadline=None, derandomize=True)
settings.load_profile("deciding" if os.environ.get("CI") else "exploring")
