# `make demo` and `make test` set up all they need: a virtual environment, and ZooKeeper and HBase on loopback.
# Nothing but Python ≥ 3.11 and Java 17 has to be there before.

VENV := .venv/bin
CODE := access benchmarks client commit_table configuration demo devcluster drills examples fleet histories kernels lease logs rest store testkit tests tso versions wire

# Hundreds of processes import the same modules: where this is set, each of them would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check kernels compiled unit simulate mutations oldest format clean

demo: .venv/installed-from
	$(VENV)/pythia demo $(DEMO_OPTIONS)

# Two at a time, and first what takes longest.
test:
	$(MAKE) --no-print-directory -j 2 compiled check kernels
	$(VENV)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder $(TEST_OPTIONS)

check: .venv/installed-from
	$(VENV)/ruff check $(CODE)
	$(VENV)/ruff format --check $(CODE)
	$(VENV)/mypy $(CODE)

# Before several processes of the tests compile them at once.
kernels: .venv/installed-from
	$(VENV)/pythia kernels

# Where one process of the tests compiles the project, the others would wait for it.
compiled: .venv/installed-from
	$(VENV)/python -c 'from benchmarks.compiled_code import compiled_code; compiled_code(lambda step: print(step.text))'

unit: .venv/installed-from
	$(VENV)/python -m pytest -m "not integration"

simulate: .venv/installed-from
	$(VENV)/python -m tests.simulation $(SIMULATION_OPTIONS)
	$(VENV)/python -m tests.simulation.exhaustive

mutations: .venv/installed-from
	$(VENV)/python -m tests.mutations

# All tests, with the oldest packages that pyproject.toml says are enough in place of the newest. Some warn of themselves.
oldest: .venv/installed-from
	$(VENV)/python -m venv --clear build/oldest
	build/oldest/bin/pip install --quiet uv
	build/oldest/bin/uv pip compile --quiet --resolution lowest-direct --extra bench --extra connect \
	    --python build/oldest/bin/python --output-file build/oldest/packages.txt pyproject.toml
	build/oldest/bin/uv pip install --quiet --python build/oldest --constraint build/oldest/packages.txt --editable '.[dev]'
	build/oldest/bin/python -m pytest -W default -n 3 --dist loadgroup --no-loadscope-reorder $(TEST_OPTIONS)

format: .venv/installed-from
	$(VENV)/ruff check --fix $(CODE)
	$(VENV)/ruff format $(CODE)

.venv/installed-from: pyproject.toml bootstrap.sh
	./bootstrap.sh

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
