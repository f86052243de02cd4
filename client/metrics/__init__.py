"""What the transactions of a program did, counted for whoever watches it."""

from client.metrics.meter import ClientMetrics, Meter

__all__ = ["ClientMetrics", "Meter"]
