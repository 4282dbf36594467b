"""`incrowd audit`: what it prints, its JSON, pictures, exit statuses and complaints."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incrowd.adversary.audit import __main__ as table_of_audits
from incrowd.adversary.audit.suite import Line
from tests.adversary.commands.conftest import Run
from tests.adversary.commands.test_render import FOUND

PAIR = ("--x", "[1, 1]", "--x-prime", "[1]", "--epsilon", "1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit", "--x", "1"], "Say what to audit"),
        (["audit", "--command", "true", "--url", "http://127.0.0.1:1/"], "one thing at a time"),
        (["audit", "--command", "true", "--quick"], "--quick is for the audit of Incrowd itself"),
        (["audit", "--command", "true", "--x", "1"], "Say with --epsilon what is claimed"),
        (["audit", "--command", "true", "--x", "1", "-e", "1"], "Give two neighbouring data sets"),
        (["audit", "--command", "true", "--x-prime", "1", "-e", "1"], "Give two neighbouring data sets"),
        (["audit", "--command", "true", *PAIR, "--seconds", "0"], "--seconds must be above 0"),
        (["audit", "--command", "no-such-command-here", *PAIR], "no-such-command-here cannot be started"),
        (["audit", "--command", "false", *PAIR], "fails on x and on x' alike (exit status 1)"),
        (["audit", "--url", "ftp://a", *PAIR], "is no HTTP address"),
        (["audit", "--url", "http://127.0.0.1:1/", *PAIR], "cannot be reached"),
        (["audit", "--mechanism", "builtins:sum", *PAIR, "--samples", "7"], "samples must be"),
        (["audit", "--mechanism", "builtins:sum", *PAIR, "--delta", "2"], "delta must be"),
        (["audit", "--mechanism", "builtins:sum", *PAIR, "--confidence", "1"], "confidence must be"),
        (["audit", "--mechanism", "builtins:sum", "--x", "@no.json", "--x-prime", "1", "-e", "1"], "no.json"),
        (["audit", "--mechanism", "builtins:sum", "--x", "3", "--values", "3", "-e", "1"], "must be lists"),
        (
            [
                "audit",
                "--mechanism",
                "builtins:sum",
                "--x",
                "[]",
                "--values",
                "[1]",
                "--relation",
                "a",
                "-e",
                "1",
            ],
            'relation must be "add-remove" or "replace"',
        ),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_a_mistake_gets_one_sentence(run: Run, arguments: list[str], said: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "") and said in err
    assert err.count("\n") == 1 and err.rstrip().endswith(".")


def test_a_function_that_breaks_its_claim_is_accused(run: Run, tmp_path: Path) -> None:
    status, out, err = run("audit", "--mechanism", "builtins:sum", *PAIR, "--samples", "400")
    assert (status, err) == (1, "") and out.startswith("violates: epsilon is at least")
    assert "claimed   epsilon 1" in out and "in 100% of 200 runs on x, in 0% of those on x'" in out
    searched = (
        "--x",
        "[1]",
        "--values",
        "[0, 9]",
        "--epsilon",
        "1",
        "--samples",
        "400",
        "--picture",
        "a.svg",
    )
    status, out, _ = run("audit", "--mechanism", "builtins:sum", *searched, "--json")
    told = json.loads(out)
    assert status == 1 and told["verdict"] == "violates" and sum(told["x"]) != sum(told["x_prime"])
    assert "violates" in (tmp_path / "a.svg").read_text()


def test_a_function_that_tells_nothing_is_not(run: Run) -> None:
    pair = ("--x", '"a"', "--x-prime", '"b"', "--epsilon", "1", "--samples", "400")
    status, out, _ = run("audit", "--mechanism", "builtins:len", *pair)
    assert status == 0 and out.startswith("consistent:") and "epsilon 0, 0% of the claim" in out


def test_a_command_is_audited_one_start_at_a_time_and_in_batches(run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.sh").write_text("wc -c\n")
    status, out, _ = run("audit", "--command", "sh one.sh", *PAIR, "--samples", "60", "--json")
    assert status == 1 and json.loads(out)["samples"] == 60
    (tmp_path / "many.py").write_text(
        "import json, sys\n"
        "asked = json.load(sys.stdin)\n"
        "for _ in range(asked['runs']):\n    print(len(asked['data']))\n"
    )
    line = f"{sys.executable} -S many.py"
    status, out, _ = run("audit", "--command", line, "--batch", *PAIR, "--json")
    assert status == 1 and json.loads(out)["samples"] == 20_000


class Answering(http.server.BaseHTTPRequestHandler):
    """Adds up the numbers that are posted to it."""

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(sum(data)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_an_address_is_audited(run: Run, address: str) -> None:
    status, out, _ = run("audit", "--url", address, *PAIR, "--samples", "60", "--workers", "2")
    assert status == 1 and out.startswith("violates")


def test_without_a_target_incrowd_itself_is_audited(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    caught = Line("mutant", "half", "half the noise", replace(FOUND, bound=2.0), 0.1)
    innocent = Line("mechanism", "Laplace", "release", FOUND, 0.1)
    asked = []

    def audited(quick: bool, workers: int | None) -> list[Line]:
        asked.append(quick)
        return lines

    monkeypatch.setattr(table_of_audits, "audited", audited)
    lines = [caught, innocent]
    status, out, _ = run("audit", "--quick", "--picture", "a.svg")
    assert status == 0 and "1 of 1 mutants caught; none of 1 real ones accused" in out
    assert (tmp_path / "a.svg").stat().st_size > 0
    lines = [replace(caught, audit=FOUND), innocent]
    status, out, _ = run("audit", "--json")
    assert status == 1 and [line["right"] for line in json.loads(out)["audits"]] == [False, True]
    assert asked == [True, False]
