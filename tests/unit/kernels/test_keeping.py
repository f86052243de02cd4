"""Compiled kernels that are kept: found by the next process, never outdated, damaged or somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numba
import numpy as np
import pytest

import kernels
from kernels import Kernel, keeping
from kernels.keeping import FILES_OF_A_KERNEL_MAX, KeptKernel, places
from tests.imports import ROOT


class Pair(NamedTuple):
    one: int
    other: int


def swapped(other: int, one: int) -> Any:
    """A class of the same name, with the fields in another order."""

    class Pair(NamedTuple):
        other: int
        one: int

    return Pair(other, one)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everything is kept; the kernels of these tests are not among the project's."""
    monkeypatch.setattr(kernels, "KERNELS", [])
    monkeypatch.setattr(keeping, "_SAID", [])
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of the user"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    return tmp_path / "chosen" / "pythia"


def tripling(signature: str | None = "int64(int64)") -> Kernel[Any, Any]:
    def tripled(number: int) -> int:
        return 3 * number

    return Kernel(tripled, signature)


def used(kernel: Kernel[Any, Any], *arguments: Any) -> tuple[int, int, int]:
    """How often something was found, was compiled and kept, and was compiled and not kept."""
    kernel(*arguments)
    assert kernel.keeping is not None
    return len(kernel.keeping.found), len(kernel.keeping.kept), kernel.keeping.not_kept


def test_what_one_compiled_the_next_one_finds(place: Path, tmp_path: Path) -> None:
    assert used(tripling(), 5) == (0, 1, 0)
    assert list(tmp_path.iterdir()) == [tmp_path / "chosen"], "no other place is made"
    assert used(tripling(), 5) == (1, 0, 0)
    assert tripling()(5) == 15
    assert len(list(place.iterdir())) == 1


def test_other_types_and_other_functions_have_files_of_their_own(place: Path) -> None:
    assert used(tripling(None), 5) == (0, 1, 0)
    assert used(tripling(None), 5.0) == (0, 1, 0)
    assert used(tripling("int32(int32)"), 5) == (0, 1, 0)
    assert used(tripling(None), np.int32(5)) == (0, 1, 0)
    assert used(tripling(None), 5) == (1, 0, 0)
    assert len(list(place.iterdir())) == 4


def test_a_named_tuple_with_other_fields_is_another_type() -> None:
    """What numba calls them says nothing of the fields."""

    def first(pair: Any) -> Any:
        return pair.one

    assert Kernel(first)(Pair(1, 2)) == 1
    assert str(numba.typeof(Pair(1, 2))) == str(numba.typeof(swapped(2, 1)))  # type: ignore[no-untyped-call]
    assert used(Kernel(first), swapped(2, 1)) == (0, 1, 0)
    assert Kernel(first)(swapped(2, 1)) == 1
    assert used(Kernel(first), Pair(1, 2)) == (1, 0, 0)


@pytest.mark.parametrize("held", [b"", b"0" * 100])
def test_a_damaged_file_is_compiled_anew(place: Path, held: bytes, caplog: pytest.LogCaptureFixture) -> None:
    used(tripling(), 5)
    (file,) = place.iterdir()
    file.write_bytes(held)
    assert used(tripling(), 5) == (0, 1, 0)
    assert "is damaged, and is compiled anew" in caplog.messages[0]
    assert used(tripling(), 5) == (1, 0, 0)


def test_so_is_what_this_numba_cannot_take(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    used(tripling(), 5)
    (file,) = place.iterdir()
    keeping._write(file, b"not pickled")
    assert used(tripling(), 5) == (0, 1, 0)
    assert "cannot be used, and is compiled anew" in caplog.messages[0]


def unwritable(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """For root, too, who may write anywhere."""
    sound = keeping._write

    def write(file: Path, body: bytes) -> None:
        if any(file.is_relative_to(folder) for folder in folders):
            raise PermissionError(f"{file} is read-only")
        sound(file, body)

    monkeypatch.setattr(keeping, "_write", write)


def test_a_place_that_cannot_be_written_to_is_read_and_another_one_takes_what_is_new(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(tripling(), 5)
    unwritable(monkeypatch, place, Path(__file__).parent)
    assert used(tripling(), 5) == (1, 0, 0)
    assert used(tripling(None), 5.0) == (0, 1, 0)
    assert len(list((tmp_path / "of the user" / "pythia" / "kernels").iterdir())) == 1


def test_where_nothing_can_be_kept_each_process_compiles_for_itself_which_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a service's user has no home, and the packages are somebody else's."""
    unwritable(monkeypatch, tmp_path, Path(__file__).parent)
    assert used(tripling(), 5) == (0, 0, 1)
    assert used(tripling(), 5) == (0, 0, 1)
    (line,) = caplog.messages
    assert "set NUMBA_CACHE_DIR" in line


def test_a_disk_that_is_full_leaves_nothing_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, held: bytes) -> int:
        with self.open("wb") as file:
            file.write(held[:10])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"):
        keeping._write(place / "file", b"0" * 100)
    assert list(place.iterdir()) == []


def test_the_chosen_place_is_the_first_and_then_that_beside_the_source(tmp_path: Path, place: Path) -> None:
    source = tmp_path / "package" / "module.py"
    source.parent.mkdir()
    of_the_user, temporary = tmp_path / "of the user" / "pythia" / "kernels", tmp_path / f"pythia-kernels-{os.getuid()}"
    assert list(places(source)) == [place, source.parent / "__pycache__", of_the_user]
    assert list(places(source, making=True)) == [place, source.parent / "__pycache__", of_the_user, temporary]
    assert list(places(source)) == [place, source.parent / "__pycache__", of_the_user, temporary]


def test_without_a_choice_and_a_home_there_is_a_place_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", str)
    assert list(places(tmp_path / "archive.zip" / "module.py")) == []
    (found,) = places(tmp_path / "archive.zip" / "module.py", making=True)
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["open to all", "a link", "a file"])
def test_what_somebody_else_may_have_put_among_temporary_files_is_not_run(tmp_path: Path, how: str) -> None:
    folder = tmp_path / f"pythia-kernels-{os.getuid()}"
    if how == "open to all":
        folder.mkdir()
        folder.chmod(0o777)
    elif how == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")
    assert folder not in list(places(tmp_path / "module.py", making=True))


def test_what_was_used_longest_ago_goes_first(place: Path) -> None:
    used(tripling(None), 5)
    (oldest,) = place.iterdir()
    names = [f"{oldest.name.partition('.<locals>')[0]}.<locals>.tripled.{number}.kernel" for number in range(40)]
    for age, name in enumerate(names):
        (place / name).write_bytes(b"")
        os.utime(place / name, (1_000_000 - age,) * 2)
    (place / "another.kernel").write_bytes(b"")
    used(tripling(None), 5.0)
    left = {file.name for file in place.iterdir()}
    assert len(left) == FILES_OF_A_KERNEL_MAX + 1
    assert {oldest.name, "another.kernel", *names[: FILES_OF_A_KERNEL_MAX - 2]} < left


def test_a_file_that_is_used_is_young_again(place: Path) -> None:
    used(tripling(), 5)
    (file,) = place.iterdir()
    os.utime(file, (1_000_000, 1_000_000))
    used(tripling(), 5)
    assert file.stat().st_mtime > 1_000_000


def test_what_holds_addresses_of_this_process_is_not_kept(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Library:
        has_dynamic_globals = True

    class Compiled:
        library = Library()

    kept = KeptKernel("name", Path(__file__), "0")
    kept.save_overload((), Compiled())
    assert (kept.not_kept, kept.kept) == (1, [])
    assert "compiled by each anew" in caplog.messages[0]
    assert not place.exists()


def test_kernels_run_from_an_archive_and_are_kept_in_the_users_cache(tmp_path: Path) -> None:
    """As those that Spark hands to its workers."""
    archive = tmp_path / "pythia.zip"
    with ZipFile(archive, "w") as files:
        for file in [*(ROOT / "kernels").glob("*.py"), *(ROOT / "store").glob("[!_]*.py")]:
            files.write(file, file.relative_to(ROOT))
        files.writestr("store/__init__.py", "")  # no door to what needs HappyBase
    program = (
        "import numpy as np; from store.lines import first_without_family as kernel;"
        "assert 'pythia.zip' in kernel.__wrapped__.__code__.co_filename;"
        "kernel(np.zeros((1, 1), np.uint8), 1); print(len(kernel.keeping.found), kernel.keeping.cache_path)"
    )
    said = []
    for _ in range(2):
        environment = {"PYTHONPATH": str(archive), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONSAFEPATH": "1"}
        ended = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        said.append(ended.stdout.strip() or ended.stderr)
    folder = tmp_path / "cache" / "pythia" / "kernels"
    assert said == [f"0 {folder}", f"1 {folder}"]
