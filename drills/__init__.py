"""Pulling the plug on real processes, and looking at what is left."""
