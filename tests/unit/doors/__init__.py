"""Mirrors a2a_grpc/server."""
