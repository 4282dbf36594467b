import os

import numpy as np
import pytest

from incrowd.errors import InvalidInput
from incrowd.noise import SeededSource, SystemSource

from .fit import LEVEL, chi_square

TYPES = [np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.statistical
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("make", [SystemSource, lambda: SeededSource(5)])
def test_words_are_uniform_over_their_whole_range(dtype, make):
    words = make().words(100_000, dtype)
    assert words.dtype == dtype and words.size == 100_000
    for shift in {0, np.iinfo(dtype).bits - 8}:
        octets = ((words >> dtype(shift)) & dtype(255)).astype(np.int64)
        assert chi_square(np.bincount(octets, minlength=256), np.full(256, words.size / 256)) > LEVEL / 2


def test_nothing_is_a_number_of_words():
    assert SystemSource().words(0, np.uint64).size == 0 and SeededSource(0).words(0, np.uint16).size == 0


def test_a_forked_child_does_not_repeat_its_parent():
    source = SystemSource()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, source.words(4, np.uint64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 32) != source.words(4, np.uint64).tobytes()
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, None])
def test_a_wrong_seed_gets_a_sentence(seed):
    with pytest.raises(InvalidInput, match="seed"):
        SeededSource(seed)
