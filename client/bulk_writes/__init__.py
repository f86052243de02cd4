"""Writes of many processes into one transaction, past any one process's memory."""
