"""The stream's state machine, with a minimal engine's side."""

import contextlib
import gc
import random
import unittest

from google.protobuf.message import DecodeError

from hookloop.cachestats import CacheStats, Meter, all_cache_stats
from hookloop.composite.v1 import composite_pb2
from hookloop.hook.v1 import observed_pb2
from hookloop.service import objects_by_slot
from hookloop.session import Cancelled, Limits, Machine, State, ProtocolError, Work
from hookloop.stream.v1 import stream_pb2
from tests.engine import CAPABILITIES, Engine, split, assemble, fragments, hash_of, list_digest, shape_and_method
from tests.requests import customize_request, decorator_request, message, sync_request

Message = stream_pb2.EngineMessage
Nack = stream_pb2.Nack


def machine(state=None, **limits):
    return Machine(
        lambda _: state if state is not None else State(),
        Limits(**({"calls": 3, "bytes": 1 << 20} | limits)),
        build_id="b1",
    )


def opened(engine, state=None, hello=None, **limits):
    """Returns a machine that has sent Welcome."""
    hook = machine(state, **limits)
    hook.receive(engine.hello(**(hello or {})))
    (welcome,) = hook.take()
    engine.apply_welcome(welcome.welcome)
    return hook


def answered(hook):
    """Returns the only message that a hook sends, which is an answer."""
    (sent,) = hook.take()
    return sent.answer


def rebuilt(work, request):
    """Reports whether the work is the whole request."""
    shape, method = shape_and_method(request)
    message = type(request).FromString(work.request)
    places = objects_by_slot(shape, method, message)
    assert not any(places.values())
    for slot in places:
        for o in work.objects.view(slot):
            if slot == 0:
                message.controller.CopyFrom(o)
            elif slot == 1:
                getattr(message, shape.parent).CopyFrom(o)
            else:
                places[slot].append(o)
    return message == request


def pods(*numbers, parent="hi", version=0):
    """Returns a request with Pods."""
    return composite_pb2.SyncRequest(
        controller=message("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "hello"),
        parent=message("example.com/v1", "Greeting", "shop", parent),
        children=[
            observed_pb2.ObjectGroup(
                api_version="v1", kind="Pod", objects=[pod(n, version) for n in numbers]
            )
        ],
    )


def pod(number, version=0):
    return observed_pb2.ObservedObject(
        api_version="v1",
        kind="Pod",
        namespace="shop",
        name=f"p{number:04}",
        body=f'{{"v":{version}}}'.encode(),
    )


class Opening(unittest.TestCase):
    def test_welcome(self):
        hook = machine(message_bytes=99)
        self.assertIsNone(hook.receive(Engine().hello(versions=[1, 2])))
        (sent,) = hook.take()
        welcome = sent.welcome
        self.assertEqual(
            (welcome.version, welcome.build_id, welcome.max_message_bytes), (1, "b1", 99)
        )
        self.assertEqual((welcome.window.calls, welcome.window.bytes), (3, 1 << 20))
        self.assertEqual(hook.take(), [])

    def test_holdings_fit_into_one_message(self):
        limit, engine, state = 4096, Engine(), State()
        hook = opened(engine, state)
        names = [f"{'a' * 100}-{n:03}" for n in range(100)]
        for name in names:
            hook.answer(
                hook.receive(engine.call(pods(1, parent=name), subject=name)).call_id, b"", []
            )
        hook.close()
        hook = machine(state)
        hook.receive(engine.hello(max_message_bytes=limit))
        (sent,) = hook.take()
        self.assertLessEqual(sent.ByteSize(), limit)
        self.assertGreater(sent.ByteSize(), limit - 130)
        held = [state.subject for state in sent.welcome.subjects]
        self.assertEqual(
            held, names[: -len(held) - 1 : -1], "the subjects used last are named, in this order"
        )
        self.assertEqual(len(state._subjects), len(held), "the engine forgets the others")
        engine.apply_welcome(sent.welcome)
        for name in (names[0], names[-1]):
            call = engine.call(pods(1, 2, parent=name), subject=name)
            self.assertEqual(call.call.base == b"", name == names[0])
            self.assertIsInstance(hook.receive(call), Work)

    def test_the_welcome_names_the_methods(self):
        hook = Machine(lambda _: State(), Limits(calls=1), methods=["/a.B/C"])
        hook.receive(Engine().hello())
        (sent,) = hook.take()
        self.assertEqual(sent.welcome.methods, ["/a.B/C"])

    def test_the_welcome_states_the_capabilities(self):
        hook = machine()
        hook.receive(Engine().hello())
        (sent,) = hook.take()
        self.assertEqual(list(sent.welcome.capabilities), CAPABILITIES)

    def test_the_state_survives_a_stream_only_if_the_engine_can_resume(self):
        for capabilities, kept in ((CAPABILITIES, 1), ([stream_pb2.CAPABILITY_CHANGES], 0)):
            with self.subTest(capabilities=capabilities):
                engine, state = Engine(), State()
                hook = opened(engine, state, hello={"capabilities": capabilities})
                hook.receive(engine.call(pods(1)))
                hook.close()
                again = machine(state)
                again.receive(engine.hello(capabilities=capabilities))
                (sent,) = again.take()
                self.assertEqual(len(sent.welcome.subjects), kept)

    def test_attach_goes_before(self):
        hook = Machine(lambda _: State(), Limits(calls=1), attach=stream_pb2.Attach(worker="w"))
        self.assertEqual([sent.attach.worker for sent in hook.take()], ["w"])
        hook.receive(Engine().hello())
        self.assertEqual([sent.WhichOneof("message") for sent in hook.take()], ["welcome"])

    def test_protocol_violations(self):
        engine = Engine()
        cases = {
            "expected 1 among them": [engine.hello(versions=[2])],
            "expected hello first": [Message(drain=stream_pb2.Drain())],
            "expected no second hello": [engine.hello(), engine.hello()],
            "expected fragment 0 of 5 bytes": [
                Message(fragment=stream_pb2.Fragment(index=1, total_bytes=5, data=b"abc"))
            ],
            "larger than the maximum of 9": [
                Message(fragment=stream_pb2.Fragment(total_bytes=10, data=b"abc"))
            ],
            "has 0 bytes, expected 1 to 5": [Message(fragment=stream_pb2.Fragment(total_bytes=5))],
            "has 6 bytes, expected 1 to 5": [
                Message(fragment=stream_pb2.Fragment(total_bytes=5, data=b"abcdef"))
            ],
            "of another, expected the next fragment": [
                Message(fragment=stream_pb2.Fragment(total_bytes=5, data=b"a")),
                engine.hello(),
            ],
            "fragments make no EngineMessage": [
                Message(fragment=stream_pb2.Fragment(total_bytes=1, data=b"\xff"))
            ],
        }
        for text, messages in cases.items():
            with self.subTest(text), self.assertRaisesRegex(ProtocolError, text):
                hook = machine(message_bytes=9)
                for one in messages:
                    hook.receive(one)

    def test_unknown_messages_are_ignored(self):
        hook = machine()
        self.assertIsNone(hook.receive(Message()))
        self.assertEqual(hook.take(), [])


class Calls(unittest.TestCase):
    def test_changes_add_up_to_whole_requests(self):
        engine = Engine()
        hook = opened(engine)
        for request in (
            sync_request(),
            decorator_request(),
            customize_request(),
            pods(1, 2, 3),
            pods(0, 2, 3, 4, version=1),
            pods(),
        ):
            work = hook.receive(engine.call(request))
            self.assertIsInstance(work, Work)
            self.assertTrue(rebuilt(work, request))
            hook.answer(work.call_id, b"", [])

    def test_only_changes_are_received(self):
        engine = Engine()
        hook = opened(engine)
        hook.receive(engine.call(pods(*range(100))))
        request = pods(*range(100))
        request.children[0].objects[50].CopyFrom(pod(50, version=1))
        call = engine.call(request)
        self.assertEqual(len(call.call.upserts), 1)
        self.assertTrue(rebuilt(hook.receive(call), request))

    def test_an_object_of_another_subject_is_named_by_its_hash(self):
        engine = Engine()
        hook = opened(engine)
        hook.receive(engine.call(pods(1, 2), subject="a"))
        call = engine.call(pods(1, 2), subject="b", hashes=True)
        self.assertEqual({upsert.WhichOneof("content") for upsert in call.call.upserts}, {"hash"})
        self.assertTrue(rebuilt(hook.receive(call), pods(1, 2)))

    def test_missing_content_is_nacked(self):
        def wrong_base(engine):
            engine.sets["a"] = split(pods(7))[1]
            return engine.call(pods(1))

        def no_base(engine):
            engine.sets["b"] = split(pods(7))[1]
            return engine.call(pods(1), subject="b")

        def unknown_object(engine):
            engine.sets["b"] = split(pods(7))[1]
            return engine.call(pods(7), subject="c", hashes=True)

        def wrong_digest(engine):
            return engine.call(pods(1, 2), digest=bytes(16))

        cases = {
            wrong_base: "UNKNOWN_BASE",
            no_base: "UNKNOWN_BASE",
            unknown_object: "UNKNOWN_OBJECT",
            wrong_digest: "DIGEST_MISMATCH",
        }
        for spoil, reason in cases.items():
            with self.subTest(spoil.__name__):
                engine = Engine()
                hook = opened(engine)
                hook.answer(hook.receive(engine.call(pods(1))).call_id, b"", [])
                hook.take()
                self.assertIsNone(hook.receive(spoil(engine)))
                answer = answered(hook)
                self.assertEqual(Nack.Reason.Name(answer.nack.reason), f"REASON_{reason}")
                self.assertTrue(hook.idle)
                self.assertTrue(
                    rebuilt(hook.receive(engine.call(pods(1, 2), snapshot=True)), pods(1, 2))
                )

    def test_a_call_that_comes_twice_is_dropped(self):
        engine = Engine()
        hook = opened(engine)
        call = engine.call(pods(1))
        self.assertIsNotNone(hook.receive(call))
        self.assertIsNone(hook.receive(call))

    def test_invalid_objects(self):
        engine = Engine()
        hook = opened(engine)
        for upsert, text in (
            (stream_pb2.Upsert(object=b"\xff"), "no hookloop.hook.v1.ObservedObject"),
            (stream_pb2.Upsert(), "neither object nor hash"),
            (stream_pb2.Upsert(hash=b"abc"), "has 3 bytes, expected 16"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ProtocolError, text):
                call = engine.call(pods(), subject="")
                call.call.upserts.append(upsert)
                hook.receive(call)

    def test_a_large_request_comes_in_fragments(self):
        engine = Engine()
        hook = opened(engine)
        request = pods(1)
        request.parent.body = b"x" * (3 << 20)
        *parts, last = fragments(engine.call(request))
        self.assertEqual(len(parts), 3)
        self.assertEqual([hook.receive(part) for part in parts], [None] * 3)
        self.assertTrue(rebuilt(hook.receive(last), request))

    def test_cancel_is_answered_immediately_and_once(self):
        engine = Engine()
        hook = opened(engine)
        work = hook.receive(engine.call(pods(1)))
        self.assertEqual(
            hook.receive(Message(cancel=stream_pb2.Cancel(call_id=work.call_id))),
            Cancelled(work.call_id),
        )
        self.assertEqual(answered(hook).error.code, 1)
        hook.answer(work.call_id, b"", [])
        self.assertIsNone(hook.receive(Message(cancel=stream_pb2.Cancel(call_id=work.call_id))))
        self.assertEqual(hook.take(), [])


class Answers(unittest.TestCase):
    def test_only_changes_are_sent(self):
        engine = Engine()
        hook = opened(engine)
        many = [str(n).encode() * 50 for n in range(1000)]
        cases = [
            (many, 1000, 0),
            (many, 0, 1),
            ([*many[:500], b"new", *many[501:]], 1, 2),
            (many[10:], 1, 2),
            ([*many[500:], *many[10:500]], 0, 2),
            ([], 0, 0),
            (many[:2], 2, 0),
            ([many[0], many[0]], 1, 1),
        ]
        for raws, inserts, keeps in cases:
            hook.answer(hook.receive(engine.call(pods(1))).call_id, b"", raws)
            answer = answered(hook)
            kinds = [piece.WhichOneof("content") for piece in answer.desired.pieces]
            self.assertEqual((kinds.count("insert"), kinds.count("keep")), (inserts, keeps))
            self.assertEqual(answer.desired.digest, list_digest(raws))
            engine.lists["a"] = self.put_together(answer.desired, engine.lists.get("a", []))
            self.assertEqual(engine.lists["a"], raws)

    @staticmethod
    def put_together(desired, before):
        raws = []
        for piece in desired.pieces:
            keep = piece.keep
            raws.extend(
                before[keep.first : keep.first + keep.count]
                if piece.HasField("keep")
                else [piece.insert]
            )
        return raws

    def test_a_list_that_the_engine_does_not_hold_is_not_referred_to(self):
        engine = Engine()
        hook = opened(engine)
        for digest in (b"", hash_of(b"other")):
            hook.answer(
                hook.receive(engine.call(pods(1), desired_digest=digest)).call_id, b"", [b"a"]
            )
            self.assertEqual(answered(hook).desired.base, b"")

    def test_a_large_answer_goes_in_fragments(self):
        engine = Engine()
        hook = opened(engine)
        large = [bytes([n]) * 1000 for n in range(256)] * 10
        hook.answer(hook.receive(engine.call(pods(1))).call_id, b"", large)
        parts = [sent.fragment for sent in hook.take()]
        self.assertEqual(len(parts), 3)
        self.assertEqual(self.put_together(assemble(parts).answer.desired, []), large)

    def test_an_engine_without_fragments_gets_at_most_one_piece(self):
        engine = Engine()
        without = [c for c in CAPABILITIES if c != stream_pb2.CAPABILITY_FRAGMENTS]
        hook = opened(engine, hello={"capabilities": [*without, 99]})
        hook.answer(hook.receive(engine.call(pods(1))).call_id, b"", [b"x" * (1 << 19)])
        self.assertEqual(len(answered(hook).desired.pieces), 1)
        hook.answer(hook.receive(engine.call(pods(2))).call_id, b"", [b"x" * (1 << 20)])
        error = answered(hook).error
        self.assertEqual(error.code, 8)
        self.assertIn("larger than max (1048576)", error.message)

    def test_an_answer_that_the_engine_does_not_accept_is_a_failure(self):
        engine = Engine()
        hook = opened(engine, hello={"max_message_bytes": 500})
        hook.answer(hook.receive(engine.call(pods(1))).call_id, b"", [b"x" * 500])
        error = answered(hook).error
        self.assertEqual(error.code, 8)
        self.assertIn("larger than max (500)", error.message)
        self.assertTrue(hook.idle)


class States(unittest.TestCase):
    def test_a_second_stream_continues(self):
        engine, state = Engine(), State()
        first = opened(engine, state)
        work = first.receive(engine.call(pods(1, 2)))
        first.answer(work.call_id, b"", [])
        first.receive(engine.call(pods(1, 2, 3)))  # open when the stream ends
        first.close()
        self.assertIsNone(first.receive(engine.call(pods(9))))
        engine.sets["a"] = split(pods(1, 2, 3))[1]

        engine.last = 0
        second = opened(engine, state)
        call = engine.call(pods(1, 2, 3, 4))
        self.assertEqual(len(call.call.upserts), 1)
        self.assertTrue(rebuilt(second.receive(call), pods(1, 2, 3, 4)))

    def test_forgetting_frees(self):
        engine, state = Engine(), State()
        hook = opened(engine, state)
        for subject in "abc":
            hook.answer(
                hook.receive(engine.call(pods(1, 2), subject=subject)).call_id, b"", [b"x" * 100]
            )
        self.assertGreater(state.bytes, 300)
        hook.receive(Message(forget=stream_pb2.Forget(subjects=["a", "b", "c", "unknown"])))
        welcome = stream_pb2.Welcome()
        state.add_holdings(welcome, 1 << 20)
        self.assertEqual((state.bytes, len(welcome.subjects)), (0, 0))

    def test_states_are_metered(self):
        meter = Meter("test")
        engine, state = Engine(), State(meter=meter)
        hook = opened(engine, state)
        for subject in "aab":
            hook.answer(
                hook.receive(engine.call(pods(1, 2), subject=subject)).call_id, b"", [b"x" * 100]
            )
        self.assertEqual(meter.stats(), CacheStats("test", state.bytes, 2, 1, 2))
        hook.receive(Message(forget=stream_pb2.Forget(subjects=["a", "b"])))
        self.assertEqual(meter.stats(), CacheStats("test", 0, 0, 1, 2))
        self.assertEqual([stats.cache for stats in all_cache_stats()], ["sessions"])

    def test_a_state_that_is_gone_is_not_metered(self):
        meter = Meter("test")
        engine, state = Engine(), State(meter=meter)
        hook = opened(engine, state)
        hook.receive(engine.call(pods(1, 2)))
        self.assertEqual(meter.stats().entries, 1)
        del hook, state
        gc.collect()
        self.assertEqual(meter.stats(), CacheStats("test", 0, 0, 0, 1))

    def test_eviction_is_reported(self):
        engine = Engine()
        hook = opened(engine, State(limit=1000))
        for n, subject in enumerate("abcdef"):
            hook.answer(
                hook.receive(engine.call(pods(n), subject=subject)).call_id, b"", [b"x" * 300]
            )
        gone = [subject for sent in hook.take() for subject in sent.forget.subjects]
        self.assertEqual(gone, list("abcdef")[: len(gone)])
        self.assertTrue(gone)

    def test_a_request_without_a_subject_has_no_state(self):
        engine, state = Engine(), State()
        hook = opened(engine, state)
        self.assertTrue(rebuilt(hook.receive(engine.call(pods(1), subject="")), pods(1)))
        self.assertEqual(state.bytes, 0)


class Noise(unittest.TestCase):
    def test_random_messages_are_handled_or_refused(self):
        for seed in range(300):
            chance, engine = random.Random(seed), Engine()
            hook = opened(engine)
            hook.receive(engine.call(pods(1, 2)))
            data = bytearray(engine.call(pods(2, 3)).SerializeToString())
            for _ in range(chance.randrange(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(128)
            with self.subTest(seed=seed), contextlib.suppress(ProtocolError, DecodeError):
                work = hook.receive(Message.FromString(bytes(data)))
                if isinstance(work, Work):
                    hook.answer(work.call_id, b"", [])
            hook.take()


class Histories(unittest.TestCase):
    def test_changes_are_equal_to_snapshots(self):
        for seed in range(100):
            with self.subTest(seed=seed):
                self.history(random.Random(seed))

    def history(self, chance):
        """Sends requests with cut streams, a lost or small state, and a wrong state of the engine.
        The hook assembles each request."""
        engine, state = Engine(), State(limit=2000)
        hook = opened(engine, state)
        for _ in range(40):
            happens = chance.random()
            if happens < 0.05:
                hook.close()
                state = state if chance.random() < 0.7 else State(limit=2000)
                engine.last = 0
                hook = opened(engine, state)
            elif happens < 0.1 and engine.sets:
                engine.sets[chance.choice(list(engine.sets))] = split(pods(99))[1]
            request = pods(
                *sorted(chance.sample(range(12), chance.randrange(8))), version=chance.randrange(2)
            )
            self.invoke(hook, engine, request, chance)

    def invoke(self, hook, engine, request, chance):
        subject, raws = chance.choice("abc"), [
            str(chance.randrange(6)).encode() * 90 for _ in range(chance.randrange(6))
        ]
        work = hook.receive(engine.call(request, subject=subject, hashes=chance.random() < 0.5))
        if work is None:
            self.assertEqual(self.answer_of(hook, engine).WhichOneof("outcome"), "nack")
            work = hook.receive(engine.call(request, subject=subject, snapshot=True))
        self.assertTrue(rebuilt(work, request))
        hook.answer(work.call_id, b"", raws)
        got = Answers.put_together(
            self.answer_of(hook, engine).desired, engine.lists.get(subject, [])
        )
        self.assertEqual(got, raws)
        if subject in engine.sets:
            engine.lists[subject] = raws

    def answer_of(self, hook, engine):
        """Returns the answer among the messages of a hook. The engine then forgets the subjects
        that the hook has forgotten."""
        sent = hook.take()
        (answer,) = [one.answer for one in sent if one.HasField("answer")]
        for one in sent:
            for subject in one.forget.subjects:
                engine.forget(subject)
        return answer
