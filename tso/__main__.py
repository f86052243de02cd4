"""`python -m tso serve …`: the same as `pythia tso serve …`, for where the project is not installed."""

from tso.commands.serve import tso

tso(prog_name="python -m tso")
