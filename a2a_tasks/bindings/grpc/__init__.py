"""The gRPC binding (A2A 1.0 §10): protobuf at the edge, the same calls into the same table behind it.

Only what serves gRPC imports this room: it needs `requirements-grpc.txt`.
"""
