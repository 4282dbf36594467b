"""The peers, and an environment for each: a folder of its own under .peers/, with pinned versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".peers"
PATIENCE = 900
"""Seconds that one installation may take."""


@dataclass(frozen=True)
class Rival:
    """A peer: its package, the Python releases it runs on, and the engine that does its work.

    `server`: that is a server. `gaussian`: it has Gaussian noise. `split`: it pays for keys apart.
    """

    name: str
    title: str
    package: str
    engine: str
    pythons: tuple[str, ...] = ("3.11", "3.12", "3.10")
    server: bool = False
    gaussian: bool = False
    split: bool = False

    @property
    def requirements(self) -> Path:
        return HERE / f"requirements-{self.name}.txt"

    def __str__(self) -> str:
        pins = dict(line.split("==") for line in self.requirements.read_text().split())
        return f"{self.title} {pins[self.package]}"


RIVALS = (
    Rival("opendp", "OpenDP", "opendp", "Polars", gaussian=True),
    Rival("tumult", "Tumult", "tmlt.analytics", "Spark", split=True),
    Rival("pipelinedp", "PipelineDP", "pipeline-dp", "Python", gaussian=True, split=True),
    Rival("smartnoise", "SmartNoise", "smartnoise-sql", "PostgreSQL", server=True),
    Rival("qrlew", "Qrlew", "pyqrlew", "PostgreSQL", server=True, gaussian=True, split=True),
)


class CannotInstall(Exception):  # noqa: N818 - it is listed, and the bench goes on
    """Why a peer has no environment here."""


def python_of(rival: Rival) -> Path:
    """The interpreter of the peer's environment, which is made the first time."""
    home = FOLDER / rival.name
    python, ready = home / "bin" / "python", home / ".ready"
    wanted = rival.requirements.read_text()
    if ready.exists() and ready.read_text() == wanted:
        return python
    with_version = _interpreter(rival.pythons)
    if with_version is None:
        raise CannotInstall(f"needs Python {' or '.join(rival.pythons)}, which is not on the path")
    print(f"Setting up {rival} in .peers/{rival.name} (once)...", file=sys.stderr)
    _made(with_version, home)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*command, "-r", rival.requirements],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"the installation took more than {PATIENCE} s") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise CannotInstall(said[-1][:200])
    ready.write_text(wanted)
    return python


def _made(python: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(exist_ok=True)
    # Debian's Python has no venv of its own unless a package is added.
    for tool in ("venv", "virtualenv"):
        if subprocess.run([python, "-m", tool, home], capture_output=True, check=False).returncode == 0:
            return
        shutil.rmtree(home, ignore_errors=True)
    raise CannotInstall("neither venv nor virtualenv can make an environment")


def _interpreter(versions: tuple[str, ...]) -> str | None:
    for version in versions:
        candidates = [sys.executable, f"python{version}"]
        if shutil.which("pyenv"):
            # What pyenv holds is on the path only while it is chosen.
            prefix = subprocess.run(["pyenv", "prefix", version], capture_output=True, text=True, check=False)
            candidates.append(f"{prefix.stdout.strip()}/bin/python")
        for candidate in candidates:
            if _version(candidate) == version:
                return candidate
    return None


def _version(python: str) -> str:
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run(
            [python, "-c", asked], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""
