"""The `pythia` command, and the commands of this room."""
