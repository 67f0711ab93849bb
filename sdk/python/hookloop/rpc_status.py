"""google.rpc.Status: the program's own, or else the SDK's generated copy.

A process can register only one definition of google/rpc/status.proto. Programs with the package
googleapis-common-protos register that one.
"""

try:
    from google.rpc import status_pb2
except ImportError:
    from hookloop.rpc import status_pb2

Status = status_pb2.Status

__all__ = ["Status", "status_pb2"]
