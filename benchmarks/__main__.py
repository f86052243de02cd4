"""`python -m benchmarks growth …`: the same as `pythia bench growth …`, for where the project is not installed."""

from benchmarks.commands import bench

bench(prog_name="python -m benchmarks")
