"""What the room exports: every name is there, and a float stands for the decimal that was written."""

from __future__ import annotations

from incrowd import privacy


def test_every_exported_name_is_there_once() -> None:
    assert len(set(privacy.__all__)) == len(privacy.__all__)
    assert all(hasattr(privacy, name) for name in privacy.__all__)


def test_ten_tenths_are_one() -> None:
    assert (privacy.pure(0.1) * 10).epsilon() == 1.0
    assert (privacy.pure(0.1) * 3).epsilon() == 0.3
