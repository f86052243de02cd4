"""Tables from the command line: made, looked at, filled from files and written to files, in transactions."""
