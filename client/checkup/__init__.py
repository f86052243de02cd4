"""``pythia check``: from this machine, each service that a program here needs, and what is wrong with it."""
