"""What the oracle processes counted, as the text that Prometheus reads. Pure: replies in, bytes out.

Each sample gets the label ``process``, so that those of several processes stand side by side under one description.
A sample whose family is not known here comes from an oracle of another release; it is passed on without a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from wire import MetricsReply
from wire.metric_families import family_of
from wire.metrics import SAMPLE

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LABEL = re.compile(r'([a-z][a-z0-9_]*)="([^"]*)"')


def prometheus_text(replies: Sequence[MetricsReply]) -> bytes:
    """The exposition of these processes' samples, of the content type ``CONTENT_TYPE``."""
    return generate_latest(_Collected(replies))


class _Collected(Collector):
    def __init__(self, replies: Sequence[MetricsReply]) -> None:
        self._replies = replies

    def collect(self) -> Iterable[Metric]:
        """All samples, by family."""
        metrics: dict[str, Metric] = {}
        for name, labels, value in _samples(self._replies):
            metric = _metric(name)
            metrics.setdefault(metric.name, metric).add_sample(name, labels, value)
        return metrics.values()


def _samples(replies: Sequence[MetricsReply]) -> Iterator[tuple[str, dict[str, str], float]]:
    for reply in replies:
        for sample, value in zip(reply.names, reply.values.tolist(), strict=True):
            found = SAMPLE.fullmatch(sample)
            assert found is not None, "a reply has only such names"
            labels = dict(_LABEL.findall(found["labels"] or ""))
            yield found["name"], {**labels, "process": reply.holder}, value


def _metric(sample: str) -> Metric:
    family = family_of(sample)
    if family is None:
        return Metric(sample, "From an oracle of another release.", "unknown")
    return Metric(family.name.removesuffix("_total"), family.text, family.kind)
