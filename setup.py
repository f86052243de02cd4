"""Compiles what every transaction passes through, where that is asked for: ``PYTHIA_COMPILE=1 pip install .``

They are ordinary Python and run as they are without it. mypyc makes C of them by their types, which mypy checks anyway.
Which modules these are, and all else about the package, is in pyproject.toml; docs/concepts/compiled.md has the rest.
"""

import os
import sys
import tomllib
from pathlib import Path

from setuptools import setup

ASKED_FOR = {"": False, "0": False, "1": True}
asked = os.environ.get("PYTHIA_COMPILE", "")
if asked not in ASKED_FOR:
    raise SystemExit(f"PYTHIA_COMPILE is 1 (compile, which takes a C compiler) or 0, not {asked!r}")

commands = set(sys.argv) if ASKED_FOR[asked] else set()
if commands & {"editable_wheel", "develop"}:
    raise SystemExit("PYTHIA_COMPILE=1 is for an installation: a compiled module beside its source hides what changes")

extensions = []
if commands & {"build", "build_ext", "bdist_wheel", "install"}:  # others only ask what there is
    from mypyc.build import mypycify

    modules = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["pythia"]["compiled"]
    # Types as they are, whatever else is installed there: the project's own settings of mypy are for its checks.
    options = ["--config-file=", "--ignore-missing-imports", "--explicit-package-bases"]
    for stale in Path("build").glob("lib*/**/*.so"):  # of a module that is compiled no more, it would be installed
        stale.unlink()
    extensions = mypycify([*options, *modules], group_name="pythia")

setup(ext_modules=extensions)
