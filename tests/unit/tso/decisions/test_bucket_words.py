"""What is compared at once is what comparing word by word would say."""

from __future__ import annotations

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tso.decisions.bucket_words import BUCKET_WORDS, lowest_bit, words_alike

WORDS = st.integers(0, 2**32 - 1)


@numba.njit(cache=False)
def alike(buckets: NDArray[np.uint32], base: int, wanted: int, shift_bits: int) -> int:
    return int(words_alike(buckets, np.uint64(base), np.uint32(wanted), np.uint32(shift_bits)))


@numba.njit(cache=False)
def lowest(bits: int) -> int:
    return int(lowest_bit(np.uint32(bits)))


@given(st.lists(WORDS, min_size=BUCKET_WORDS, max_size=BUCKET_WORDS), st.integers(0, 31), st.data())
def test_each_word_has_the_bit_of_its_own(words: list[int], shift_bits: int, data: st.DataObject) -> None:
    wanted = data.draw(st.one_of(WORDS, st.sampled_from(words), st.sampled_from(words).map(lambda word: word ^ 1)))
    buckets = np.array([wanted] * BUCKET_WORDS + words + [wanted] * BUCKET_WORDS, np.uint32)  # neighbours are not asked
    expected = sum((word ^ wanted) >> shift_bits == 0 and 1 << place for place, word in enumerate(words))
    assert alike(buckets, BUCKET_WORDS, wanted, shift_bits) == expected


def test_every_bit_can_be_the_lowest() -> None:
    for place in range(BUCKET_WORDS):
        assert lowest(1 << place) == place
        assert lowest(0xFFFF_FFFF << place & 0xFFFF_FFFF) == place
