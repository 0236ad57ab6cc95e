"""The API is what its description says: drf-spectacular has nothing to warn of, and schemathesis finds no answer beyond it."""

from __future__ import annotations

import difflib
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from drf_spectacular.drainage import reset_generator_stats
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from a2a_console.api.views import describe_api
from a2a_tasks.models import ApiKey, Task
from tests.support.console.api.rights import BODIES, RIGHTS
from tests.support.console.api.world import API, World, asked, key_of, person, populated
from tests.support.thorough import THOROUGH, examples

pytestmark = pytest.mark.django_db

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
#: What is made up for a route, each way.
EXAMPLES = examples(12, quick=3)
#: The same where a body must name something. Of this route it is rarely drawn so that it does.
OF_BODIES, RARE, OF_RARE = examples(60, quick=12), "replay_deliveries", examples(60, quick=40)
#: The description as programs of operators know it. `make openapi` writes it anew.
GOLDEN = Path(__file__).parent / "golden" / "openapi.json"


def lines_of(document: Any) -> list[str]:
    return json.dumps(document, indent=1, sort_keys=True).splitlines()


class TestTheDescription:
    def test_has_nothing_to_warn_of(self) -> None:
        reset_generator_stats()
        written = io.StringIO()
        call_command(
            "spectacular",
            "--custom-settings",
            "a2a_console.api.schema.DESCRIPTION",
            "--validate",
            "--fail-on-warn",
            "--format",
            "openapi-json",
            stdout=written,
        )
        assert json.loads(written.getvalue())["openapi"] == "3.1.0"

    def test_is_the_golden_one(self) -> None:
        served = lines_of(asked(person(), "/openapi.json").json)
        golden = lines_of(json.loads(GOLDEN.read_text(encoding="utf-8")))
        difference = difflib.unified_diff(golden, served, "golden", "served", lineterm="")
        assert "\n".join(difference) == ""

    def test_is_for_whoever_may_read_and_all_of_the_staff(self) -> None:
        assert asked(None, "/openapi.json").code == "unauthenticated"
        answer = asked(person(), "/openapi.json")
        assert answer.headers["content-type"] == "application/vnd.oai.openapi+json"
        assert answer.json["paths"]

    def test_is_for_callers_who_may_read(self) -> None:
        assert asked(key_of("admin:write"), "/openapi.json").code == "missing_scope"
        assert asked(key_of("admin:read"), "/openapi.json").status == 200

    def test_describes_every_route_and_every_error(self) -> None:
        for path, methods in describe_api()["paths"].items():
            for method, about in methods.items():
                told = about["responses"]
                assert {"400", "401", "403", "500", "503"} <= set(told), path
                assert ("404" in told) == ("{" in path), path
                assert ("415" in told) == (method in {"post", "patch"}), path
                problems = (answer for status, answer in told.items() if status >= "4")
                assert all(answer["description"] for answer in problems), path
                assert about["summary"]
                assert "Scope `admin:" in about["description"]

    def test_names_the_ways_in_that_are_open(self, settings: Any) -> None:
        def named() -> set[str]:
            found: dict[str, Any] = asked(person(name=f"bob{len(seen)}"), "/openapi.json").json
            seen.append(found)
            return set(found["components"]["securitySchemes"])

        seen: list[Any] = []
        assert named() == {"apiKey", "session"}
        settings.A2A_JWT_ISSUER = "https://login.example.com"
        settings.A2A_BASIC = True
        assert named() == {"bearer", "apiKey", "basic", "session"}
        assert {"bearer": []} in seen[-1]["paths"][f"{API}/tasks"]["get"]["security"]


@pytest.fixture
def world(db: None) -> World:
    return populated()


@cache
def operations() -> dict[str, Any]:
    """Every route by its name, to be asked with what schemathesis makes up."""
    loaded = schemathesis.openapi.from_dict(json.loads(json.dumps(describe_api())))
    loaded.app = get_wsgi_application()
    found = [each.ok() for each in loaded.get_all_operations() if isinstance(each, Ok)]
    return {each.definition.raw["operationId"]: each for each in found}


@pytest.fixture
def operation(request: pytest.FixtureRequest) -> Any:
    return operations()[request.param]


def test_every_route_is_asked() -> None:
    assert set(operations()) == set(RIGHTS)


def names_of_rows(operation: Any, world: World) -> dict[str, Any]:
    """What its path names, if it is to be found."""
    real = world.at(operation.path).split("/")
    pairs = zip(operation.path.split("/"), real, strict=True)
    return {said.strip("{}"): name for said, name in pairs if said.startswith("{")}


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@pytest.mark.parametrize("operation", sorted(RIGHTS), indirect=True)
class TestARoute:
    def answers_as_described(
        self,
        operation: Any,
        mode: GenerationMode,
        key: str = "",
        rows: dict[str, Any] | None = None,
        count: int = EXAMPLES,
    ) -> set[int]:
        """Ask it many things, of any rows or of these; the statuses that came."""
        statuses: set[int] = set()
        headers = {"X-API-Key": key} if key else {}
        about = {"path_parameters": rows} if rows else {}

        @hypothesis.settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate],
        )
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode, **about))
        def ask(case: Any) -> None:
            answer = case.call(headers=headers)
            statuses.add(answer.status_code)
            case.validate_response(answer, checks=CHECKS)

        ask()
        return statuses

    def test_answers_an_operator_as_it_says(self, operation: Any, world: World) -> None:
        key = key_of("admin:read", "admin:write", "admin:keys")
        rows = names_of_rows(operation, world)
        name = operation.definition.raw["operationId"]
        count = OF_RARE if name == RARE else OF_BODIES if name in BODIES else EXAMPLES
        found = self.answers_as_described(operation, GenerationMode.POSITIVE, key, rows, count)
        assert found & {200, 201, 409}, found
        # Then what it should not be asked, or, if everything may be, any row. Queries are read alike on every route
        # (`test_problems`): of those without a body it is for `make test-all`.
        about = operation.definition.raw
        if not THOROUGH and "requestBody" not in about:
            return
        spoiled = "requestBody" in about or any(
            p["in"] == "query" for p in about.get("parameters", [])
        )
        mode = GenerationMode.NEGATIVE if spoiled else GenerationMode.POSITIVE
        self.answers_as_described(operation, mode, key)

    @pytest.mark.thorough  # `test_who_may` has strangers at each route once
    def test_answers_nobody_and_nobody_changes_anything(self, operation: Any, world: World) -> None:
        before = list(Task.objects.values_list("state")), ApiKey.objects.count()
        found = self.answers_as_described(operation, GenerationMode.POSITIVE, count=2)
        assert found == {401}
        assert (list(Task.objects.values_list("state")), ApiKey.objects.count()) == before
