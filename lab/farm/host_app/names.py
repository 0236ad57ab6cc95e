"""Names as this process resolves them: those of the farm by a table, all others as ever. Every look-up is written down.

A resolver is the machine's, and no process can be given another one; so the farm stands in for it here.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

__all__ = ["NAMES", "install"]

LOOPBACK = "127.0.0.1"
#: What names below `farm.test`, which the lab's operator vouches for, are; all that is not here is this machine.
FAULTS = {
    "nxdomain.farm.test": socket.EAI_NONAME,
    "servfail.farm.test": socket.EAI_AGAIN,
    "timeout.farm.test": socket.EAI_AGAIN,
}
#: Names nobody vouches for, which lead to where nobody may be led.
NAMES = {
    "inside.example.com": LOOPBACK,
    "metadata.example.com": "169.254.169.254",
    "outside.example.com": LOOPBACK,
}
#: Seconds until a resolver that hears nothing gives up.
PATIENCE = float(os.environ.get("FARM_RESOLVER_SECONDS", "5"))
_ledger = os.environ.get("FARM_LOOKUPS", os.devnull)


def install() -> None:
    """Have `socket.getaddrinfo` go by the table."""
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.lower() if isinstance(host, str) else ""
        if not name.endswith((".farm.test", ".example.com")):
            return real(host, port, *args, **kwargs)
        _note(name)
        if name in FAULTS:
            if name.startswith("timeout"):
                time.sleep(PATIENCE)
            raise socket.gaierror(FAULTS[name], "as the farm's table says")
        return real(NAMES.get(name, LOOPBACK), port, *args, **kwargs)

    socket.getaddrinfo = getaddrinfo


def _note(name: str) -> None:
    file = os.open(_ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        line = {"t": time.time(), "what": "looked-up", "name": name, "pid": os.getpid()}
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
