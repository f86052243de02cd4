"""Lives of an installation as on the twins, on real HBase, which compacts its tables meanwhile.

What is asked of HBase is that it does what its twin does; this is where a difference would be met that nobody thought
of. ``python -m tests.installation_life --thrift HOST:PORT`` goes on with it for hours.
"""

from __future__ import annotations

import random

import pytest

from tests.conftest import Services
from tests.installation_life.running import live

pytestmark = pytest.mark.integration

SEEDS = 2
STEPS = 200


@pytest.mark.parametrize("number", range(SEEDS))
def test_a_life_on_hbase_is_as_the_model_says(services: Services, number: int) -> None:
    """Each run has other seeds: one that fails says which."""
    seed = random.randrange(10**6)
    lived = live(seed, STEPS, services.thrift)
    assert lived.wrong is None, "\n".join([f"seed {seed}", *lived.story, lived.wrong])
