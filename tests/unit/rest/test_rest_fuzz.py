"""Every operation of the OpenAPI document, asked for whatever the document allows and more: no fault of the server, and
only answers that the document names.

The server is a real one, on a socket, with a real oracle. Transactions that are open are among what is asked about, so
that requests get past "unknown".
"""

from __future__ import annotations

from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.unit.rest.asking import begin
from tests.unit.rest.conftest import Served

EXAMPLES_PER_OPERATION = 5
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def test_no_request_is_a_fault_of_the_server(served: Served) -> None:
    schema = schemathesis.openapi.from_url(f"{served.rest.url}/v1/openapi.json")
    asked: dict[str, int] = {}
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        fuzz(served, found.ok(), asked)
    document = served.client.get("/v1/openapi.json").json()
    assert len(asked) == sum(len(methods) for methods in document["paths"].values()), asked


def fuzz(served: Served, operation: Any, asked: dict[str, int]) -> None:
    @hypothesis.given(case=operation.as_strategy(), known=hypothesis.strategies.booleans())
    @hypothesis.settings(
        max_examples=EXAMPLES_PER_OPERATION,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any, known: bool) -> None:
        asked[operation.label] = asked.get(operation.label, 0) + 1
        if known:
            address_what_is_there(served, case)
        case.call_and_validate(checks=CHECKS)

    ask()


def address_what_is_there(served: Served, case: Any) -> None:
    for name, value in {"id": begin(served.client), "table": "accounts", "row": "fuzzed"}.items():
        if name in case.path_parameters:
            case.path_parameters[name] = value
