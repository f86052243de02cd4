"""For the tests of whoever uses Pythia: a whole installation in the test's own process, without any service."""

from testkit.installation import InProcessInstallation
from testkit.limits import small_limits
from testkit.oracle import OracleThread

__all__ = ["InProcessInstallation", "OracleThread", "small_limits"]
