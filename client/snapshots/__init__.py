"""What a snapshot sees: rows read, versions chosen, and moments of the past, with a name or without."""
