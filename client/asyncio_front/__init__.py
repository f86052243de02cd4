"""Transactions for the tasks of an asyncio event loop: what ``client.TransactionManager`` has, to be waited for.

The rules are those of the front that blocks, since it is the one that runs, in threads. What is added here is the order
of a transaction's calls, and what a cancellation means.
"""

from client.asyncio_front.manager import AsyncTransactionManager
from client.asyncio_front.snapshot import AsyncSnapshot
from client.asyncio_front.transaction import AsyncSavepoint, AsyncTransaction

__all__ = ["AsyncSavepoint", "AsyncSnapshot", "AsyncTransaction", "AsyncTransactionManager"]
