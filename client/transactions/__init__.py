"""A transaction from its begin to its outcome: what it wrote, who is told; and fences, which are one."""
