from __future__ import annotations

import json
from dataclasses import replace

from drills.findings import Findings
from drills.outages import Outage
from drills.site import Announced, Tenure
from drills.verdict import Verdict


def test_an_oracle_is_what_it_said_last() -> None:
    announced = Announced("tso-1")
    listening: list[str] = []
    take = announced.begin(listening.append)
    assert (announced.address, announced.epoch) == (None, None)
    take("serving on 127.0.0.1:5480 as standby", 1)
    assert (announced.address, listening) == ("127.0.0.1:5480", ["127.0.0.1:5480"])
    take("primary, epoch 77", 2)
    assert announced.epoch == 77
    take("standby", 3)
    assert announced.epoch is None


def test_a_late_line_of_an_earlier_oracle_is_a_tenure_and_nothing_else() -> None:
    announced = Announced("tso-1")
    earlier = announced.begin()
    later = announced.begin()
    later("serving on 127.0.0.1:1 as standby", 1)
    earlier("serving on 127.0.0.1:2 as standby", 2)
    earlier("primary, epoch 5", 3)
    assert announced.tenures == [Tenure("tso-1", 5)]
    assert (announced.address, announced.epoch) == ("127.0.0.1:1", None)


def test_findings_are_the_same_after_a_pipe() -> None:
    verdict = Verdict(["a"], [], [], [], ["b", "c"], [3, 4], {1: 2})
    found = Findings([Outage(1.5, None, 2.0)], verdict, 10, 7, 3.5, 90.0)
    assert Findings.from_pipe(json.loads(json.dumps(found.to_pipe()))) == found
    assert found != replace(found, commits=8)
