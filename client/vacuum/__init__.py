"""Dropping what no reader needs any more: old versions, what aborted, finished records and commit-table rows."""

from client.vacuum.report import TableReport, VacuumReport
from client.vacuum.run import HorizonUnknown, run_vacuum

__all__ = ["HorizonUnknown", "TableReport", "VacuumReport", "run_vacuum"]
