"""All words of a bucket looked at with one comparison, as the widest registers of the machine allow.

A loop over them is one comparison and one branch a word: numba has no vectors, and its compiler unrolls so short a loop
before it could make one of it. So these say what they mean to LLVM itself, which knows for each machine how it is done.
The idea is that of Swiss tables (Kulukundis, CppCon 2017) and F14 (Bronson and Shi 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

BUCKET_WORDS = 16
"""A bucket is a cache line of 64 bytes: words that lead to entries, and last the number of entries beyond it."""
_WORD = ir.IntType(32)
_BUCKET = ir.VectorType(_WORD, BUCKET_WORDS)
_ZEROS = ir.Constant(_BUCKET, [0] * BUCKET_WORDS)


def _compare(typing: Any, buckets: Any, base: Any, wanted: Any, shift_bits: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        words = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(words.data, [arguments[1]]), _BUCKET.as_pointer())
        differing = builder.xor(builder.load(place, align=_WORD.width // 8), _in_each(builder, arguments[2]))
        alike = builder.icmp_unsigned("==", builder.lshr(differing, _in_each(builder, arguments[3])), _ZEROS)
        return builder.zext(builder.bitcast(alike, ir.IntType(BUCKET_WORDS)), _WORD)

    return types.uint32(buckets, types.uint64, types.uint32, types.uint32), generate


def _count_zeros(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        one_is_set = ir.Constant(ir.IntType(1), 1)
        return builder.zext(builder.cttz(arguments[0], one_is_set), ir.IntType(64))

    return types.uint64(types.uint32), generate


def _in_each(builder: ir.IRBuilder, number: Any) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(_BUCKET, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, number, ir.Constant(_WORD, 0)), nothing, _ZEROS)


words_alike = cast(Callable[[NDArray[np.uint32], np.uint64, np.uint32, np.uint32], np.uint32], intrinsic(_compare))
"""Of an array, where a bucket begins in it, what is wanted, and a number of bits below 32: a bit for each word of the
bucket, the lowest for the first, set where it is what is wanted, whatever so many of its lowest bits are."""

lowest_bit = cast(Callable[[np.uint32], np.uint64], intrinsic(_count_zeros))
"""Which is the lowest bit that is set; one must be."""
