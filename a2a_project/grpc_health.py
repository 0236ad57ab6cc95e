"""`python -m a2a_project.grpc_health HOST:PORT`: check that a gRPC server serves.

For health checks of containers.
"""

from __future__ import annotations

import asyncio
import sys

from grpclib.client import Channel
from grpclib.exceptions import GRPCError
from grpclib.health.v1.health_grpc import HealthStub
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

SECONDS = 3.0


def serves(address: str) -> bool:
    """Ask the server, without TLS."""
    return asyncio.run(_serves(address))


async def _serves(address: str) -> bool:
    host, _, port = address.rpartition(":")
    async with Channel(host.strip("[]"), int(port)) as channel:
        try:
            answer = await HealthStub(channel).Check(HealthCheckRequest(), timeout=SECONDS)
        except (GRPCError, OSError, TimeoutError):
            return False
    return bool(answer.status == HealthCheckResponse.SERVING)


if __name__ == "__main__":
    sys.exit(0 if serves(sys.argv[1]) else 1)
