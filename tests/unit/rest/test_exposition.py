"""Metrics as text: Prometheus' own parser reads back what the oracles said."""

from __future__ import annotations

import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from client import ClientMetrics
from rest.exposition import prometheus_text
from tso.metering import Metering
from wire import MetricsReply, Role


def reply(holder: str, samples: dict[str, float], role: Role = Role.PRIMARY) -> MetricsReply:
    return MetricsReply(role, holder, "h:1", tuple(samples), np.array([*samples.values()]))


def read_back(reply: MetricsReply, *beside: Collector) -> dict[tuple[str, str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(prometheus_text(reply, *beside).decode())
    return {
        (family.type, sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_samples_say_whose_they_are_and_what() -> None:
    a = reply("a", {"pythia_commits_total": 5, 'pythia_refusals_total{answer="overloaded"}': 2})
    assert read_back(a) == {
        ("counter", "pythia_commits_total", frozenset({("process", "a")})): 5,
        ("counter", "pythia_refusals_total", frozenset({("process", "a"), ("answer", "overloaded")})): 2,
    }


def test_what_is_counted_beside_the_oracle_stands_beside_it() -> None:
    metrics = ClientMetrics()
    metrics.meter("/pythia").rolled_back()
    found = read_back(reply("a", {"pythia_commits_total": 5}), metrics)
    labels = frozenset({("process", "a"), ("root", "/pythia")})
    assert found["counter", "pythia_client_rollbacks_total", labels] == 1
    assert found["counter", "pythia_commits_total", frozenset({("process", "a")})] == 5
    assert all(("process", "a") in labels for _, _, labels in found)


def test_a_histogram_is_one() -> None:
    metering = Metering(lambda: 3.0)
    metering.began(10, since_s=2.998)
    found = read_back(reply("a", dict(metering.samples())))
    buckets = {
        dict(labels)["le"]: value for (_, name, labels), value in found.items() if name.endswith("begin_seconds_bucket")
    }
    assert buckets["0.001"] == 0
    assert buckets["0.0025"] == 10
    assert buckets["+Inf"] == 10
    assert {kind for (kind, name, _) in found if name.startswith("pythia_begin_seconds")} == {"histogram"}


def test_what_is_not_known_is_passed_on_without_a_type() -> None:
    [(kind, name, _)] = read_back(reply("a", {"pythia_of_tomorrow": 1}))
    assert (kind, name) == ("unknown", "pythia_of_tomorrow")


def test_a_name_that_needs_it_is_escaped() -> None:
    [(_, _, labels)] = read_back(reply('a"b\\c', {"pythia_connections": 1}))
    assert dict(labels) == {"process": 'a"b\\c'}
