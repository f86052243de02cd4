"""The oracle's rules: what a begin gets, which commits may be, and what is remembered for that. No input or output."""
