"""What an oracle and the REST beside it counted, as the text that Prometheus reads. Pure: counts in, bytes out.

Each sample gets the label ``process``, the oracle's name, so that it is known whose it is wherever it goes. A sample
whose family is not known here comes from an oracle of another release; it is passed on without a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from wire import MetricsReply
from wire.metric_families import family_of
from wire.metrics import SAMPLE

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LABEL = re.compile(r'([a-z][a-z0-9_]*)="([^"]*)"')


def prometheus_text(reply: MetricsReply, *beside: Collector) -> bytes:
    """The exposition of an oracle's samples and of what is collected ``beside`` it, of the type ``CONTENT_TYPE``."""
    return generate_latest(_Collected(reply, beside))


class _Collected(Collector):
    def __init__(self, reply: MetricsReply, beside: Sequence[Collector]) -> None:
        self._reply = reply
        self._beside = beside

    def collect(self) -> Iterator[Metric]:
        """All samples, by family."""
        process = {"process": self._reply.holder}
        metrics: dict[str, Metric] = {}
        for name, labels, value in _samples(self._reply):
            metric = _metric(name)
            metrics.setdefault(metric.name, metric).add_sample(name, {**labels, **process}, value)
        yield from metrics.values()
        for collector in self._beside:
            for metric in collector.collect():
                metric.samples = [one._replace(labels={**one.labels, **process}) for one in metric.samples]
                yield metric


def _samples(reply: MetricsReply) -> Iterator[tuple[str, dict[str, str], float]]:
    for sample, value in zip(reply.names, reply.values.tolist(), strict=True):
        found = SAMPLE.fullmatch(sample)
        assert found is not None, "a reply has only such names"
        yield found["name"], dict(_LABEL.findall(found["labels"] or "")), value


def _metric(sample: str) -> Metric:
    family = family_of(sample)
    if family is None:
        return Metric(sample, "From an oracle of another release.", "unknown")
    return Metric(family.name.removesuffix("_total"), family.text, family.kind)
