"""Backups: all tables as one snapshot shows them, in a directory of files, and made anew from there."""
