"""What takes long to import is imported where it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALONE = """
import sys, types
package = types.ModuleType("incrowd")  # the rooms alone, without what the package itself imports
package.__path__ = [{path!r}]
sys.modules["incrowd"] = package
import incrowd.noise, incrowd.privacy, incrowd.mechanisms
"""


@pytest.mark.parametrize("module", ["scipy", "mpmath", "pandas", "pyarrow", "multiprocessing"])
def test_the_rooms_of_mechanisms_do_not_import(module):
    import incrowd

    program = ALONE.format(path=incrowd.__path__[0]) + f"assert {module!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nobody_waits_for_scipy_before_it_is_needed():
    program = "import incrowd.mechanisms, sys; assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
