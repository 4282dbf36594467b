"""An arena: a folder with a small table, an owner's file and its ledger, and the journals of those who ask.

The ledger lies in a folder of its own, so that its disk can be filled and nothing else's.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

ANALYSTS = ("ana", "bob")
CAPS = {
    "ana": ("dataset", "group:all", "analyst:ana", "day:ana"),
    "bob": ("dataset", "group:all", "analyst:bob"),
}
LIMITS = {
    "dataset": Fraction(4),
    "group:all": Fraction(3),
    "analyst:ana": Fraction(2),
    "day:ana": Fraction(1),
    "analyst:bob": Fraction(1),
}
"""What the owner's file grants, or a share of it."""

ROWS = 400


@dataclass(frozen=True)
class Arena:
    """Where one ledger lives.

    url: the address of its database; None for a file. share: the part of LIMITS that the owner's file grants.
    """

    folder: Path
    url: str | None = None
    share: Fraction = Fraction(1)

    @property
    def name(self) -> str:
        """What the report calls it."""
        return "sqlite" if self.url is None else "postgres"

    @property
    def policy(self) -> Path:
        """The owner's file."""
        return self.folder / "curator.yaml"

    @property
    def account(self) -> Path:
        """The folder of the ledger's file, if it is one."""
        return self.folder / "account"

    @property
    def ledger(self) -> Path:
        """The ledger's file, if it is one."""
        return self.account / "soak.ledger"

    @property
    def side_files(self) -> tuple[Path, ...]:
        """What SQLite keeps beside it."""
        return tuple(self.ledger.with_name(self.ledger.name + suffix) for suffix in ("-wal", "-shm"))

    @property
    def limits(self) -> dict[str, Fraction]:
        """What the owner's file grants, by budget."""
        return {key: limit * self.share for key, limit in LIMITS.items()}

    @property
    def anchor(self) -> Path:
        """The anchor's file."""
        return self.folder / "anchor" / "head"

    @property
    def journals(self) -> Path:
        """The folder of journals."""
        return self.folder / "journals"

    @property
    def skew(self) -> Path:
        """The file that says by how many seconds clocks are wrong."""
        return self.folder / "skew"

    def prepare(self) -> None:
        """Write everything but the ledger."""
        for folder in (self.folder, self.account, self.anchor.parent, self.journals):
            folder.mkdir(parents=True, exist_ok=True)
        rows = (f"{number},{number * 7 % 90},{'nsw'[number % 3]}\n" for number in range(ROWS))
        (self.folder / "people.csv").write_text("id,age,region\n" + "".join(rows))
        self.skew.write_text("0")
        self.policy.write_text(json.dumps(self._terms()))

    def copied_to(self, folder: Path) -> Arena:
        """An arena with the same owner's file and anchor elsewhere, and no ledger yet."""
        copy = Arena(folder, share=self.share)
        copy.prepare()
        identity = json.loads(self.policy.read_text())["id"]
        copy.policy.write_text(json.dumps({"id": identity, **copy._terms()}))
        if self.anchor.exists():
            copy.anchor.write_bytes(self.anchor.read_bytes())
        return copy

    def _terms(self) -> dict[str, object]:
        columns = {
            "id": {"type": "integer"},
            "age": {"type": "integer", "bounds": [0, 100]},
            "region": {"type": "text", "domain": ["n", "s", "w"]},
        }
        granted = {key: {"epsilon": float(limit)} for key, limit in self.limits.items()}
        return {
            "sources": {"main": {"csv": "people.csv"}},
            "tables": {"people": {"unit": "id", "contribution": 1, "columns": columns}},
            "budget": granted["dataset"],
            "groups": {"all": {**granted["group:all"], "members": list(ANALYSTS)}},
            "analysts": {
                "ana": {**granted["analyst:ana"], "per_day": granted["day:ana"]},
                "bob": granted["analyst:bob"],
            },
            "ledger": self.url or os.path.relpath(self.ledger, self.folder),
            "anchor": str(self.anchor),
        }
