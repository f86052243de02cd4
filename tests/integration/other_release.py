"""A program of this project as if it were of another release: one that works at other levels.

python -m tests.integration.other_release <lowest level> <highest level> <module> <arguments of that module …>
"""

from __future__ import annotations

import runpy
import sys

from versions import LevelRange, levels

if __name__ == "__main__":
    levels.SPOKEN = LevelRange(int(sys.argv[1]), int(sys.argv[2]))
    module, sys.argv = sys.argv[3], sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
