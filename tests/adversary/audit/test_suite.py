"""The table of all audits: what it lists, what it says, and when it fails."""

from __future__ import annotations

import inspect
import json

import pytest

from incrowd import mechanisms
from incrowd.adversary.audit import __main__ as entry
from incrowd.adversary.audit import suite
from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.real import REAL
from incrowd.mechanisms import Mechanism


def test_every_real_mechanism_is_audited():
    kinds = [
        name
        for name, member in vars(mechanisms).items()
        if inspect.isclass(member) and issubclass(member, Mechanism) and not inspect.isabstract(member)
    ]
    audited = {case.name.split(",")[0] for case in REAL}
    assert set(kinds) - {"Processed"} <= audited
    assert "post-processing" in audited


def test_every_case_has_a_name_of_its_own():
    for kind in ("mutant", "mechanism", "curator"):
        names = [case.name for case in suite.cases(kind)]
        assert len(set(names)) == len(names)
    assert len(suite.everything()) == sum(
        len(suite.cases(kind)) for kind in ("mutant", "mechanism", "curator")
    )


FEW = [("mutant", 0, 0.05), ("mechanism", 0, 0.001), ("curator", 0, 0.001)]


def lines():
    return [suite.one(kind, place, share, 0.999) for kind, place, share in FEW]


@pytest.fixture
def few(monkeypatch):
    few = lines()
    monkeypatch.setattr(entry, "audited", lambda quick, workers: few)
    return few


def test_the_table_names_every_audit(few, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    entry.main([])
    shown = capsys.readouterr().out
    assert all(line.name in shown for line in few)
    assert "mutants caught; " in shown


def test_the_audits_as_json(few, capsys):
    status = entry.main(["--json"])
    told = json.loads(capsys.readouterr().out)
    assert [line["name"] for line in told] == [line.name for line in few]
    assert status == (0 if all(line["right"] for line in told) else 1)


def test_a_mutant_that_escapes_fails_the_run(monkeypatch, capsys):
    sound = Case("sound", "Nothing is wrong.", lambda data: 0, 0, 1, 1.0, samples=40)
    monkeypatch.setattr(suite, "cases", lambda kind: [sound])
    monkeypatch.setattr(entry, "cases", suite.cases)
    escaped = suite.one("mutant", 0, 1.0, 0.999)
    assert escaped.word == "ESCAPED"
    monkeypatch.setattr(entry, "audited", lambda quick, workers: [escaped])
    assert entry.main([]) == 1
    assert "0 of 1 mutants caught" in capsys.readouterr().out


def test_a_real_one_that_is_accused_fails_the_run(monkeypatch, capsys):
    leaky = Case("leaky", "Everything is wrong.", lambda data: data, 0, 1, 1.0, samples=400)
    monkeypatch.setattr(suite, "cases", lambda kind: [leaky])
    monkeypatch.setattr(entry, "cases", suite.cases)
    accused = suite.one("mechanism", 0, 1.0, 0.999)
    assert accused.word == "ACCUSED"
    monkeypatch.setattr(entry, "audited", lambda quick, workers: [accused])
    assert entry.main([]) == 1
    assert "1 of 1 real ones accused" in capsys.readouterr().out


def test_audits_run_in_processes_of_their_own(monkeypatch, capsys):
    monkeypatch.setattr(entry, "everything", lambda quick: [FEW[0], ("mutant", 3, 0.05)])
    audited = entry.audited(quick=True, workers=1)
    assert {line.name for line in audited} == {suite.cases("mutant")[place].name for place in (0, 3)}
