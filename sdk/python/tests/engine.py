"""A minimal engine's side of a session: the expected state of the hook, requests as changes, and
assemble responses."""

import hashlib

from hookloop.hook.v1 import desired_pb2
from hookloop.service import COMPOSITE, DECORATOR, MAP
from hookloop.stream.v1 import stream_pb2

PIECE = 1 << 20
CAPABILITIES = stream_pb2.Capability.values()[1:]  # all of them


def hash_of(data):
    return hashlib.sha256(data).digest()[:16]


def digest(parts):
    return (sum(int.from_bytes(part, "little") for part in parts) % 2**128).to_bytes(16, "little")


def set_digest(entries):
    """Returns the digest of entries: (slot, namespace, name) to the object's bytes."""
    return digest(
        hash_of(key[0].to_bytes(4, "little") + hash_of(raw)) for key, raw in entries.items()
    )


def list_digest(raws):
    hashes = [hash_of(raw) for raw in raws]
    return digest(hash_of(before + own) for before, own in zip([bytes(16), *hashes], hashes))


def fragments(message):
    data = message.SerializeToString()
    for index, start in enumerate(range(0, len(data), PIECE)):
        yield stream_pb2.EngineMessage(
            fragment=stream_pb2.Fragment(
                index=index, total_bytes=len(data), data=data[start : start + PIECE]
            )
        )


def assemble(parts):
    """Returns the HookMessage of fragments."""
    assert [part.index for part in parts] == list(range(len(parts)))
    data = b"".join(part.data for part in parts)
    assert all(part.total_bytes == len(data) and 0 < len(part.data) <= PIECE for part in parts)
    return stream_pb2.HookMessage.FromString(data)


def shape_of(request):
    """Returns the shape with the service of a request."""
    package = type(request).DESCRIPTOR.file.package
    return next(
        shape for shape in (COMPOSITE, DECORATOR, MAP) if shape.module.DESCRIPTOR.package == package
    )


def shape_and_method(request):
    return shape_of(request), type(request).__name__.removesuffix("Request")


def split(request):
    """Returns a request without its objects, and those: (slot, namespace, name) to bytes."""
    shape, method = shape_and_method(request)
    envelope = type(request)()
    envelope.CopyFrom(request)
    places = [(0, [request.controller]), (1, [getattr(request, shape.parent)])]
    envelope.ClearField("controller")
    envelope.ClearField(shape.parent)
    if shape.has_input(method):
        places.append((2, [request.input] if request.HasField("input") else []))
        envelope.ClearField("input")
    if method != "Customize":
        for n, group in enumerate(getattr(envelope, shape.children)):
            places.append((shape.first_slot + 2 * n, getattr(request, shape.children)[n].objects))
            group.ClearField("objects")
        for n, group in enumerate(envelope.related):
            if group.HasField("items"):
                places.append((3 + 2 * n, request.related[n].items.objects))
                group.items.ClearField("objects")
    entries = {
        (slot, o.namespace, o.name): o.SerializeToString()
        for slot, objects in places
        for o in objects
    }
    return envelope, dict(sorted(entries.items()))


class Engine:
    """The state of the hook as the engine expects it, and the messages that depend on it."""

    def __init__(self, session_id="session"):
        self.session_id = session_id
        self.sets, self.lists, self.calls = {}, {}, {}
        self.last = 0

    def hello(self, **fields):
        fields = {
            "versions": [1],
            "session_id": self.session_id,
            "max_message_bytes": 64 << 20,
            "capabilities": CAPABILITIES,
        } | fields
        return stream_pb2.EngineMessage(hello=stream_pb2.Hello(**fields))

    def apply_welcome(self, welcome):
        """Forgets the subjects that the hook does not have."""
        held = {state.subject: state.digest for state in welcome.subjects}
        for subject in list(self.sets):
            if held.get(subject) != set_digest(self.sets[subject]):
                self.forget(subject)

    def forget(self, subject):
        self.sets.pop(subject, None)
        self.lists.pop(subject, None)

    def call(self, request, /, subject="a", timeout=30.0, snapshot=False, hashes=False, **fields):
        """Returns a call with the changes of the subject's set. With hashes, the call refers to the
        objects of other subjects by their hashes."""
        shape, method = shape_and_method(request)
        if snapshot:
            self.forget(subject)
        envelope, entries = split(request)
        before = self.sets.get(subject)
        known = (
            {hash_of(raw) for held in self.sets.values() for raw in held.values()}
            if hashes
            else set()
        )
        self.last += 1
        call = stream_pb2.Call(
            id=self.last,
            method=f"/{shape.service}/{method}",
            subject=subject,
            envelope=envelope.SerializeToString(),
            digest=set_digest(entries),
            base=b"" if before is None else set_digest(before),
        )
        call.timeout.FromNanoseconds(int(timeout * 1e9))
        for slot, namespace, name in (before or {}).keys() - entries.keys():
            call.removed.add(slot=slot, namespace=namespace, name=name)
        for key, raw in entries.items():
            if (before or {}).get(key) == raw:
                continue
            call.upserts.add(
                slot=key[0],
                **({"hash": hash_of(raw)} if hash_of(raw) in known else {"object": raw}),
            )
        if subject and subject in self.lists:
            call.desired_digest = list_digest(self.lists[subject])
        for name, value in fields.items():
            setattr(call, name, value)
        if subject:
            self.sets[subject] = entries
        self.calls[call.id] = request, subject, self.lists.get(subject, ())
        return stream_pb2.EngineMessage(call=call)

    def response(self, answer):
        """Returns the whole response of an answer."""
        request, subject, before = self.calls.pop(answer.call_id)
        assert answer.WhichOneof("outcome") == "desired", answer
        desired, raws = answer.desired, []
        assert desired.base in (b"", list_digest(before)), "the answer refers to an unknown list"
        for piece in desired.pieces:
            if piece.WhichOneof("content") == "keep":
                assert desired.base and piece.keep.first + piece.keep.count <= len(before)
                raws.extend(before[piece.keep.first : piece.keep.first + piece.keep.count])
            else:
                raws.append(piece.insert)
        assert desired.digest == list_digest(raws)
        if subject:
            self.lists[subject] = raws
        shape, method = shape_and_method(request)
        message = shape.message(method, "Response").FromString(desired.envelope)
        if raws:
            getattr(message, shape.children).extend(map(desired_pb2.DesiredObject.FromString, raws))
        return message
