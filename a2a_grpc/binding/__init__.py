"""The gRPC binding (A2A 1.0 §10): protobuf outside, and inside the same calls of operations as in other bindings.

Only gRPC servers import this package: the descriptors take a while to load.
"""
