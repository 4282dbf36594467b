"""How property tests run: never against the clock; the same examples each time where a run decides (CI).

And the real servers that tests may ask for, each started when the first one does.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import servers

settings.register_profile("exploring", deadline=None)
settings.register_profile("deciding", deadline=None, derandomize=True)
settings.load_profile("deciding" if os.environ.get("CI") else "exploring")


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all that needs Spark, first, and each other file be one worker's.

    Starting Spark takes a worker longer than most files; what a file's tests share is made once.
    """
    for item in items:
        group = "spark" if "spark" in item.nodeid else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: ("spark" not in item.nodeid, "hostile" not in item.nodeid))


def pytest_configure() -> None:
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
