"""What the room offers to the rooms below it."""

from __future__ import annotations

import incrowd.query


def test_every_name_that_is_offered_is_there() -> None:
    assert sorted(incrowd.query.__all__) == incrowd.query.__all__
    assert all(hasattr(incrowd.query, name) for name in incrowd.query.__all__)
