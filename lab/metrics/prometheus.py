"""A Prometheus with the shipped configuration, where this machine has one (`apt-get install prometheus`)."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any

import httpx

from lab.faultlab.private import PrivateServer
from tests.support.prometheus import CONFIGURATION, RULES, path

__all__ = ["WINDOW", "Prometheus"]

#: Minutes of the rules become a few seconds, and so do ages after which somebody is to look.
WINDOW, AGE, LASTING = 15, 10, 4
#: Seconds between two looks at a process. It has as long to answer, also on a busy machine.
EVERY = 3


def hasten(rules: str) -> str:
    """The rules with short times: their meaning stays the same."""
    rules = re.sub(r"\bfor: \w+", f"for: {LASTING}s", rules)
    rules = re.sub(r"\[(\d+)m\]", lambda found: f"[{max(WINDOW, 2 * int(found[1]))}s]", rules)
    return re.sub(r"> \d{3,}", f"> {AGE}", rules)


class Prometheus(PrivateServer):
    """The shipped configuration and rules, in a hurry, with these addresses in place of the shipped ones."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """Write the configuration; `addresses` has the process of each address. Nothing runs yet."""
        super().__init__("prometheus")
        (self.directory / "rules.yaml").write_text(hasten(RULES.read_text(encoding="utf-8")))
        shipped, targets = CONFIGURATION.read_text(encoding="utf-8"), ""
        for address, process in addresses.items():
            targets += f'      - targets: ["{address}"]\n        labels: {{ process: {process} }}\n'
        shipped = shipped.partition("      - targets:")[0]
        shipped = shipped.replace("scrape_interval: 15s", f"scrape_interval: {EVERY}s")
        shipped = shipped.replace("evaluation_interval: 15s", "evaluation_interval: 1s") + targets
        (self.directory / "prometheus.yaml").write_text(shipped)
        self._http = httpx.Client(base_url=f"http://{self.host}:{self.port}", trust_env=False)

    def start(self) -> None:
        """Start it; returns when it answers."""
        self.spawn(
            [
                path() or "prometheus",
                "--config.file=prometheus.yaml",
                "--storage.tsdb.path=data",
                f"--web.listen-address={self.host}:{self.port}",
            ]
        )
        self.await_answer(self._is_ready)

    def stop(self) -> None:
        """End it."""
        self.signal(signal.SIGTERM)
        self.wait()

    def close(self) -> None:
        """End it and leave nothing behind."""
        self._http.close()
        super().close()

    def _is_ready(self) -> bool:
        try:
            return self._http.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def _ask(self, path: str, **parameters: str | float) -> Any:
        answer = self._http.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, query: str, begin: float, end: float) -> list[Any]:
        """The series of a query in this time, at every second."""
        found = self._ask("query_range", query=query, start=begin, end=end, step=1)
        series: list[Any] = found["result"]
        return series

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        alerts = self._ask("alerts")["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}
