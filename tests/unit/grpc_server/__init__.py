"""Mirrors a2a_project/grpc_server."""
