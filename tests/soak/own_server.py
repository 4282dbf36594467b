"""A PostgreSQL server of the soak's own, which may be stopped, crashed and started again on the same data."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import servers
from tests.soak.processes import end_with

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # the machine is not switched off, and pages that were written survive the server
    "max_wal_size": "32MB",
    "min_wal_size": "2MB",
    "restart_after_crash": "on",
}
_SUPERUSER = "root_of_soak"


class OwnServer:
    """A server whose data lie in one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._binaries = servers.postgres_binaries()
        self._options: dict[str, Any] = {"cwd": home, "stdin": subprocess.DEVNULL}
        self._server: subprocess.Popen[bytes] | None = None
        self._ending = functools.partial(end_with, os.getpid(), signal.SIGQUIT)
        self.known = servers.Postgres(servers._free_port(), secrets.token_hex(16))

    def found(self) -> str:
        """Make the data folder, start, and make a database; its address."""
        user = servers._unprivileged()
        self.home.chmod(0o700)
        if user is not None:
            self._options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.home, user.pw_uid, user.pw_gid)
            if not servers._runs(self._binaries / "initdb", self._options):
                self._binaries = servers._opened(self._binaries, self.home.parent)
        secret = self.home / "password"
        secret.write_text(self.known.password)
        words: list[str | Path] = [self._binaries / "initdb", "-D", self.home / "data", "-U", _SUPERUSER]
        words += ["-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--no-locale", "--no-sync"]
        words += ["--wal-segsize=1"]
        subprocess.run(words, check=True, capture_output=True, **self._options)
        secret.unlink()
        self.start()
        with self.connected() as connection:
            connection.execute(f"CREATE ROLE {servers.OWNER} LOGIN PASSWORD '{self.known.password}'")
            connection.execute(f"CREATE DATABASE soak OWNER {servers.OWNER}")
        return self.known.url("soak")

    def start(self) -> None:
        """Start it, and wait until it answers; RuntimeError if it does not."""
        words: list[str | Path] = [self._binaries / "postgres", "-D", self.home / "data"]
        for name, value in {**_SETTINGS, "port": self.known.port}.items():
            words += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self._server is None or self._server.poll() is not None:
                with (self.home.parent / "postgres.log").open("ab") as log:
                    self._server = subprocess.Popen(
                        words, stdout=log, stderr=log, preexec_fn=self._ending, **self._options
                    )
            with contextlib.suppress(Exception), self.connected():
                return
            time.sleep(0.1)
        raise RuntimeError(f"The server does not start; see {self.home.parent / 'postgres.log'}.")

    def stop(self, how: signal.Signals) -> None:
        """End it: SIGINT in order, SIGQUIT at once."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(timeout=60)

    def end_sessions(self) -> int:
        """End all sessions of the ledger's database; how many there were."""
        with self.connected() as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'soak'"
            )
            return len(ended.fetchall())

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection that may do everything."""
        import psycopg

        address = self.known.url("postgres", _SUPERUSER)
        with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
            yield connection
