"""The installation in one process that the client's tests run on: the real oracle over twins of its services."""

from tests.unit.client.conftest import empty_installation, installation, manager

__all__ = ["empty_installation", "installation", "manager"]
