"""gRPC: `binding` has the rpcs of the protocol, `server` the HTTP/2 server around them.

The host imports none of this, and finds the server by its entry point: `a2a_project/grpc_process.py`.
"""
