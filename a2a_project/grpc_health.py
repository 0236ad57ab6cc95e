"""`python -m a2a_project.grpc_health HOST:PORT`: does a gRPC server say that it serves? For health checks of containers."""

from __future__ import annotations

import sys
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

CHECK = "/grpc.health.v1.Health/Check"
SECONDS = 3.0


def serves(address: str) -> bool:
    """Ask it, in clear."""
    with grpc.insecure_channel(address) as channel:
        try:
            check: Any = channel.unary_unary(CHECK, HealthCheckRequest.SerializeToString)
            answer = HealthCheckResponse.FromString(check(HealthCheckRequest(), timeout=SECONDS))
        except grpc.RpcError:
            return False
    return bool(answer.status == HealthCheckResponse.SERVING)


if __name__ == "__main__":
    sys.exit(0 if serves(sys.argv[1]) else 1)
