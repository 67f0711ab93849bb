"""Defines the messages of google.rpc and grpc.health.v1 that a hook uses, because neither protobuf
nor grpcio contains them.

They live in a descriptor pool of their own: a program may have generated code for the same
messages, and the names would collide in the common pool. The encoding is the same, since it does
not contain message names.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "hookloop.wellknown"
_FIELD = descriptor_pb2.FieldDescriptorProto
# Fields of each message in order, from number 1: (name, type). A dot in front of a type means that
# it is a message.
_MESSAGES = {
    "Duration": (("seconds", "int64"), ("nanos", "int32")),  # google.protobuf
    "ErrorInfo": (("reason", "string"), ("domain", "string")),  # google.rpc
    "RetryInfo": (("retry_delay", ".Duration"),),  # google.rpc
    "HealthCheckRequest": (("service", "string"),),  # grpc.health.v1
    "HealthCheckResponse": (("status", "int32"),),  # grpc.health.v1; the enum is a number
}


def _field(number: int, name: str, kind: str) -> Any:
    field = _FIELD(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
    if kind.startswith("."):
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}{kind}"
    else:
        field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")
    return field


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="hookloop/wellknown.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        message.field.extend(_field(number, *field) for number, field in enumerate(fields, start=1))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        make = message_factory.GetMessageClass
    else:
        make = message_factory.MessageFactory(pool).GetPrototype
    return {name: make(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}


_made = _classes()
Duration = _made["Duration"]
ErrorInfo = _made["ErrorInfo"]
RetryInfo = _made["RetryInfo"]
HealthCheckRequest = _made["HealthCheckRequest"]
HealthCheckResponse = _made["HealthCheckResponse"]
