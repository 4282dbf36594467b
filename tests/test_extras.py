"""The core works without any extra, and whoever needs one is told in one sentence which to install.

One process, in which the packages of the extras cannot be imported, tries everything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest

from tests.hospital import ROOT

EXTRAS = {
    "ibis": ["ibis"],
    "pandas": ["pandas"],
    "polars": ["polars"],
    "plot": ["altair", "vl_convert"],
    "postgres": ["psycopg", "psycopg_pool"],
    "spark": ["pyspark"],
}
"""For each extra that users install: the modules of its packages."""

NEEDS = {
    "table": "ibis",
    "to_pandas": "pandas",
    "to_polars": "polars",
    "plot": "plot",
    "postgresql": "postgres",
    "ledger": "postgres",
    "spark": "spark",
    "spark connect": "spark",
}
"""For each thing that is tried below: the extra that it needs."""

PROGRAM = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {[name for names in EXTRAS.values() for name in names]}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())

import json
from incrowd import Curator, IncrowdError
from incrowd.backends.registry import describe
from incrowd.cli import main
from incrowd.curator import Ledger
from incrowd.data import adult

with Curator.from_tables(adult=adult(), unit="row", budget=(1.0, 1e-6)) as curator:
    answer = curator.ask("SELECT sex, COUNT(*) AS n FROM adult GROUP BY 1", epsilon=0.1)
    catalog = curator.catalog
tried = {{
    "table": lambda: curator.table("adult"),
    "to_pandas": answer.to_pandas,
    "to_polars": answer.to_polars,
    "plot": answer.plot,
    "postgresql": lambda: describe("postgresql://owner@host/clinic"),
    "ledger": lambda: Ledger.open("postgresql://owner@host/account", catalog),
    "spark": lambda: describe("spark://host:7077"),
    "spark connect": lambda: describe("sc://host"),
}}
sentences = {{}}
for name, attempt in tried.items():
    try:
        attempt()
    except IncrowdError as error:
        sentences[name] = str(error)
status = main(["explain", "epsilon", "1"])
print(json.dumps({{"rows": len(str(answer).splitlines()), "sentences": sentences, "status": status}}))
"""


@pytest.fixture(scope="module")
def report() -> dict[str, object]:
    """What happened in a process without extras."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return read


def test_the_extras_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(declared) - {"bench", "dev"} == set(EXTRAS)


def test_a_question_is_answered_and_a_command_runs_without_extras(report: dict[str, object]) -> None:
    assert report["rows"] == 4 and report["status"] == 0


def test_what_needs_an_extra_names_it_in_one_sentence(report: dict[str, dict[str, str]]) -> None:
    assert report["sentences"].keys() == NEEDS.keys()
    for name, extra in NEEDS.items():
        assert re.fullmatch(rf"[^\n]* pip install 'incrowd\[{extra}\]'\.", report["sentences"][name]), name
