"""Provides google.rpc.Status: the program's own class, or else the copy that was generated for the
SDK.

A process can register only one definition of google/rpc/status.proto, and programs with the package
googleapis-common-protos register theirs.
"""

try:
    from google.rpc import status_pb2
except ImportError:
    from hookloop.rpc import status_pb2

Status = status_pb2.Status

__all__ = ["Status", "status_pb2"]
