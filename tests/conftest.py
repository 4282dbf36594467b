"""How property tests run: never against the clock; the same examples each time where a run decides (CI).

And the real servers that tests may ask for, each started when the first one does.
"""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests import servers

settings.register_profile("exploring", deadline=None)
settings.register_profile("deciding", deadline=None, derandomize=True)
settings.load_profile("deciding" if os.environ.get("CI") else "exploring")


def scope_of(nodeid: str) -> str:
    """What one worker runs as a whole: all that needs Spark, or another file.

    Starting Spark takes a worker longer than most files; what a file's tests share is made once.
    """
    return "spark" if "spark" in nodeid else nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    items.sort(key=lambda item: ("spark" not in item.nodeid, "hostile" not in item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give workers whole scopes, in order."""
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return ByScope(config, log)


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # A run that a shell started in the background ignores Ctrl-C, which tests send to themselves.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # In the process that workers come from: its end is the end of the servers that any of them started.
    servers.open_room()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A database on a real PostgreSQL server, this worker's for the whole run; its role owns it."""
    with servers.postgres().database() as url:
        yield url


@pytest.fixture
def postgres_database() -> Iterator[str]:
    """A fresh database on the same server, for one test."""
    with servers.postgres().database() as url:
        yield url


@pytest.fixture(scope="session")
def spark_connect_url() -> str:
    """A real Spark Connect server's address."""
    return servers.spark_connect()
