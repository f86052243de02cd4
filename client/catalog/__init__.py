"""What all clients must agree on about a table."""
