"""The way to the primary oracle and back: found, asked in as few frames as the traffic needs, and asked again."""
