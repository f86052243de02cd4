"""`python -m histories check …`: the same as `pythia history check …`, for where the project is not installed."""

from histories.commands import history

history(prog_name="python -m histories")
