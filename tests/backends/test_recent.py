import gc
from concurrent.futures import ThreadPoolExecutor

from incrowd.backends import recent as module
from incrowd.backends.recent import recent


class Thing:
    """Equal to every other thing, as trees with colliding hashes are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_the_same_object_is_worked_on_once_and_an_equal_one_again() -> None:
    worked: list[int] = []

    @recent
    def value_of(thing: Thing, factor: int) -> int:
        worked.append(thing.value)
        return thing.value * factor

    first, second = Thing(1), Thing(2)
    assert [value_of(first, 3), value_of(second, 3), value_of(first, 3)] == [3, 6, 3]
    assert worked == [1, 2]
    assert value_of(first, 4) == 4 and worked == [1, 2, 1]


def test_an_id_that_is_used_again_is_another_object() -> None:
    value_of = recent(lambda thing: thing.value)
    for value in range(10_000):
        assert value_of(Thing(value)) == value
        gc.collect(0) if value % 100 == 0 else None


def test_only_the_last_few_are_kept() -> None:
    worked: list[int] = []

    @recent
    def noted(thing: Thing) -> int:
        worked.append(thing.value)
        return thing.value

    things = [Thing(value) for value in range(module._MOST_KEPT + 1)]
    for thing in things:
        noted(thing)
    noted(things[-1])
    assert len(worked) == len(things)
    noted(things[0])
    assert worked[-1] == 0


def test_threads_share_it() -> None:
    value_of = recent(lambda thing: thing.value)
    things = [Thing(value) for value in range(50)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(value_of, things * 200)) == [thing.value for thing in things] * 200
