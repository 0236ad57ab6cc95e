"""`itk.py SDK REPORT`, in the folder of the ITK: its service runs every behaviour over every binding, SDK and host calling each other."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, ".")

import itk_service

SDK, REPORT = sys.argv[1:]
BEHAVIOURS = (
    ("send_message", False),
    ("send_message", True),
    ("push_notification", False),
    ("resubscribe", True),
)
#: `build_subtests` makes the kit go on after an exception.
TESTS = [
    {
        "name": f"{behaviour}{' streamed' * streaming}, {binding}",
        "sdks": [SDK, "current"],
        "behavior": behaviour,
        "protocols": [binding],
        "streaming": streaming,
        "build_subtests": True,
    }
    for binding in ("jsonrpc", "http_json", "grpc")
    for behaviour, streaming in BEHAVIOURS
]
told = asyncio.run(itk_service.run_tests(itk_service.RunTestsRequest(tests=TESTS)))
faults = {name: "" if one.passed else "failed" for name, one in told.results.items()}
Path(REPORT).write_text(json.dumps(faults))
