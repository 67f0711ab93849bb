"""The reference hook on the SDK in Python with one planted fault: faulty.py FAULT [FLAG...].

Each fault is an error that the author of an SDK could make. The kit must find it.
"""

import json
import sys

import hook
import hookloop.request
import hookloop.service
from hookloop.conversation import Conversation
from hookloop.rpc_status import Status
from hookloop.session import machine, observed, state, wire
from hookloop.session.desired import DesiredList
from hookloop.session.machine import Machine
from hookloop.session.state import State
from hookloop.session.wire import hash_of
from hookloop.stream.v1 import stream_pb2


def big_endian_digests():
    wire._number = lambda data: int.from_bytes(data, "big")
    wire._bytes = lambda number: (number % wire._MODULUS).to_bytes(wire.HASH_BYTES, "big")


def list_digest_without_order():
    def init(self, items=()):
        self.items, self.size = items, sum(len(item.raw) for item in items)
        self.digest = wire.total(hash_of(bytes(16) + item.hash) for item in items)

    DesiredList.__init__ = init


def slots_are_big_endian():
    observed._entry_hash = lambda slot, content: hash_of(slot.to_bytes(4, "big") + content)


def removed_is_ignored():
    observed.Edit.remove = lambda self, slot, key: None


def digests_are_not_checked():
    class Anything(bytes):
        def __ne__(self, other):
            return False

    done = observed.Edit.done

    def unchecked(self):
        result = done(self)
        result.digest = Anything(result.digest)
        return result

    observed.Edit.done = unchecked


def bases_are_not_checked():
    state._base = lambda call, subject: subject.set if call.base and subject else None


def state_survives_forget():
    Machine._forget = lambda self, forget: None


def state_survives_nack():
    forget = State.forget
    call = Machine._call

    def keep(self, message):
        State.forget = lambda *_: None
        try:
            return call(self, message)
        finally:
            State.forget = forget

    Machine._call = keep


def state_survives_without_resume():
    State.clear = lambda self: None


def state_is_lost_with_the_stream():
    State.add_holdings = lambda self, welcome, limit: self.clear()


def cancelled_calls_have_no_answer():
    Machine._cancel = lambda self, cancel: self._end(cancel.call_id) and None


def cancelled_calls_have_two_answers():
    cancel = Machine._cancel

    def twice(self, message):
        received = cancel(self, message)
        if received:
            again = Status(code=1, message="again")
            self._send(answer=stream_pb2.Answer(call_id=message.call_id, error=again))
        return received

    Machine._cancel = twice


def timeouts_are_ignored():
    Conversation._expire = lambda self, now: None


def old_ids_are_served():
    call = Machine._call

    def again(self, message):
        self._last_call_id = 0
        return call(self, message)

    Machine._call = again


def large_answers_are_one_piece():
    machine.wire.fragments = lambda message: [message]


def fragments_are_not_checked():
    def add(self, fragment):
        self._data += fragment.data
        self._total = fragment.total_bytes
        if len(self._data) < fragment.total_bytes:
            return None
        whole = bytes(self._data)
        self._total, self._data = 0, bytearray()
        return whole

    wire.Assembler.add = add


def unknown_capabilities_are_an_error():
    hello = Machine._hello

    def strict(self, message):
        if set(message.capabilities) - set(machine.CAPABILITIES):
            raise wire.ProtocolError("an unknown capability")
        return hello(self, message)

    Machine._hello = strict


def any_version_is_accepted():
    hello = Machine._hello

    def lenient(self, message):
        message.versions.append(machine.VERSION)
        return hello(self, message)

    Machine._hello = lenient


def answers_are_always_whole():
    Machine._base = lambda self, call: None


def answers_refer_to_any_list():
    Machine._base = lambda self, call: call.subject and call.subject.list


def integers_are_doubles():
    loads = json.loads
    json.loads = lambda text, **more: loads(text, **{**more, "parse_int": float})


def errors_have_no_details():
    Conversation._refuse = lambda self, call_id, failed: self._machine.refuse(
        call_id, Status(code=failed.code, message=failed.message)
    )


def drain_is_ignored():
    Machine._drain = lambda self, _: None


FAULTS = {
    name: fault
    for name, fault in list(globals().items())
    if getattr(fault, "__module__", "") == __name__
}

if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    hook.main()
