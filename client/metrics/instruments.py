"""Counters and histograms as families describe them, for what a program counts, and REST. They are Prometheus' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric

from wire.metric_families import Family

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds of the bins of all histograms: what a caller waits for, from a begin to the shadow cells of a large job."""


class Instruments:
    """One counter or histogram for each family that is one; gauges are read where they are. Thread-safe.

    They are in a registry of their own: what is made of them is registered as a whole, or read as it is.
    """

    def __init__(self, families: Sequence[Family], more_labels: Sequence[str] = ()) -> None:
        self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for family in families:
            labels = (*more_labels, *family.labels)
            if family.kind == "counter":
                self._counters[family.name] = Counter(family.name, family.text, labels, registry=self._registry)
            elif family.kind == "histogram":
                self._histograms[family.name] = Histogram(
                    family.name, family.text, labels, buckets=SECONDS, registry=self._registry
                )

    def counter(self, name: str, **labels: str) -> Counter:
        """The counter with these labels, which is there from now on. Raises ``KeyError`` for a name that is none's."""
        counter = self._counters[name]
        return counter.labels(**labels) if labels else counter

    def histogram(self, name: str, **labels: str) -> Histogram:
        """As ``counter``."""
        histogram = self._histograms[name]
        return histogram.labels(**labels) if labels else histogram

    def collect(self) -> Iterator[Metric]:
        """All of them, without the moment at which each was made: ``_created`` is a series more for each, of no use."""
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
