"""A transaction from its begin to its outcome: what it wrote, how far it has come, and who is told."""
