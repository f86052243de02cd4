"""Broken rules of compiled kernels: outdated, damaged or foreign machine code that is run."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_PRINTS = "kernels/fingerprints.py"
_KEEPING = "kernels/keeping.py"
_CHANGES = "unit/kernels/test_fingerprints.py::test_a_change_of_what_is_compiled_in_has_another"
_TESTS = "unit/kernels/test_keeping.py"

KERNEL_RULES = [
    Mutation(
        "what a kernel takes from other modules is not part of what it is compiled from",
        _PRINTS,
        "                yield from _of_value(function.__globals__[name], (*within, function))\n",
        "",
        _CHANGES,
    ),
    Mutation(
        "the code of a kernel is not part of what it is compiled from",
        _PRINTS,
        "(code.co_code, repr(",
        "(repr(",
        _CHANGES,
    ),
    Mutation(
        "constants of a kernel are not part of what it is compiled from",
        _PRINTS,
        "        yield from _of_values(code.co_consts, (*within, function))\n",
        "",
        _CHANGES,
    ),
    Mutation(
        "functions that are defined in a kernel are not part of what it is compiled from",
        _PRINTS,
        "            yield from _codes(constant)\n",
        "            yield from ()\n",
        _CHANGES,
    ),
    Mutation(
        "arrays that a kernel takes are told by their types alone",
        _PRINTS,
        "        yield value.tobytes()\n",
        "",
        _CHANGES,
    ),
    Mutation(
        "what a function closes over is not part of it",
        _PRINTS,
        "    yield from _of_values(tuple(around.values()), (*within, function))\n",
        "",
        "unit/kernels/test_fingerprints.py::test_what_a_function_closes_over_belongs_to_it",
    ),
    Mutation(
        "an object is told by where it lies",
        _PRINTS,
        '    if " at 0x" in text:',
        "    if False:",
        "unit/kernels/test_fingerprints.py::test_an_object_that_only_says_where_it_lies_is_refused",
    ),
    Mutation(
        "what was compiled for other types is run",
        _KEEPING,
        "self._fingerprint, _told(signature), codegen",
        "self._fingerprint, codegen",
        f"{_TESTS}::test_other_types_and_other_functions_have_files_of_their_own",
    ),
    Mutation(
        "named tuples are one type whatever the order of their fields",
        _KEEPING,
        "getattr(types, 'fields', ())",
        "()",
        f"{_TESTS}::test_a_named_tuple_with_other_fields_is_another_type",
    ),
    Mutation(
        "a damaged file is run",
        _KEEPING,
        "    if sha256(body).digest() != digest:\n",
        "    if False:\n",
        f"{_TESTS}::test_a_damaged_file_is_compiled_anew",
    ),
    Mutation(
        "what this numba cannot take ends the program",
        _KEEPING,
        "            except Exception as error:",
        "            except ZeroDivisionError as error:",
        f"{_TESTS}::test_so_is_what_this_numba_cannot_take",
    ),
    Mutation(
        "a place that cannot be written to ends the program",
        _KEEPING,
        "            except OSError as error:\n                log.debug",
        "            except ZeroDivisionError as error:\n                log.debug",
        f"{_TESTS}::test_a_place_that_cannot_be_written_to_is_read_and_another_one_takes_what_is_new",
    ),
    Mutation(
        "what somebody else put among temporary files is run",
        _KEEPING,
        "found.st_uid == os.getuid() and not found.st_mode & 0o077",
        "found.st_uid == os.getuid()",
        f"{_TESTS}::test_what_somebody_else_may_have_put_among_temporary_files_is_not_run",
    ),
    Mutation(
        "a link among temporary files is followed",
        _KEEPING,
        "        found = folder.lstat()\n",
        "        found = folder.stat()\n",
        f"{_TESTS}::test_what_somebody_else_may_have_put_among_temporary_files_is_not_run",
    ),
    Mutation(
        "addresses of one process are kept for others",
        _KEEPING,
        "        if compiled.library.has_dynamic_globals:",
        "        if False:",
        f"{_TESTS}::test_what_holds_addresses_of_this_process_is_not_kept",
    ),
    Mutation(
        "what is kept grows with each release",
        _KEEPING,
        '            _drop_oldest(place, f"{self._name}.")\n',
        "",
        f"{_TESTS}::test_what_was_used_longest_ago_goes_first",
    ),
    Mutation(
        "a full disk leaves parts of kernels behind",
        _KEEPING,
        "            partial.unlink()\n",
        "            pass\n",
        f"{_TESTS}::test_a_disk_that_is_full_leaves_nothing_behind",
    ),
    Mutation(
        "a kernel calls others that are not compiled",
        "kernels/__init__.py",
        "            self._resolve()\n",
        "",
        "unit/kernels/test_kernels.py",
    ),
    Mutation(
        "kernels that take whatever types are not compiled beforehand",
        "kernels/commands.py",
        "        use()\n",
        "        pass\n",
        "unit/kernels/test_kernels_command.py::test_it_compiles_what_has_types_and_calls_what_has_none",
    ),
    Mutation(
        "kernels that could not be kept are said to be there",
        "kernels/commands.py",
        "    if lost:\n",
        "    if False:\n",
        "unit/kernels/test_kernels_command.py::test_where_nothing_can_be_kept_it_fails_and_says_what_to_do",
    ),
]
