"""The tests' own servers: one for a run, gone with it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests import servers

ROOT = Path(__file__).parent.parent
RUN = "from tests import servers; print(servers.postgres().url('postgres'), flush=True); input()"


def test_workers_of_a_run_share_one_server(postgres_url: str) -> None:
    other = subprocess.run(
        [sys.executable, "-c", RUN], cwd=ROOT, input="\n", capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == servers.postgres().url("postgres")


def test_the_role_of_the_tests_is_no_superuser_and_owns_its_database(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, pg_get_userbyid(datdba) = current_user"
            " FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()"
        ).fetchone()
    assert rights == (False, False, False, True)


@pytest.mark.parametrize("ending", ["ends", "is killed"])
def test_a_run_leaves_no_server_behind_when_it(ending: str) -> None:
    # Not in tmp_path, whose parents only its owner may enter, and the server may run as another user.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        check_nothing_is_left(folder, killed=ending == "is killed")


def check_nothing_is_left(folder: Path, *, killed: bool) -> None:
    alone = {key: value for key, value in os.environ.items() if key != servers.ROOM}
    alone["TMPDIR"] = str(folder)
    command, pipe = [sys.executable, "-c", RUN], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=alone, stdin=pipe, stdout=pipe, text=True) as run:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        (room,) = folder.iterdir()
        with (room / "postgres.keeper").open("a") as keeper:
            psycopg.connect(url).close()
            if killed:
                run.kill()
            else:
                run.communicate("\n")
            fcntl.flock(keeper, fcntl.LOCK_EX)  # the keeper holds it to its end
    assert not room.exists()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
