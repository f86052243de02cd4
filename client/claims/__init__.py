"""What is on record of the keys that transactions have claimed (``Transaction.claim``): work that lands once."""

from client.claims.recorded import claim_of, claims, forget
from client.transactions.claims import Claim

__all__ = ["Claim", "claim_of", "claims", "forget"]
