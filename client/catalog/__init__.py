"""What all clients must agree on about a table, and the fences that keep them from missing a change of it."""
