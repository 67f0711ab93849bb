"""Several hooks of one kind in one server, and the features of responses."""

import unittest

import grpc

import hookloop
from hookloop import features
from hookloop.composite.v1 import composite_pb2
from hookloop.hook.v1 import desired_pb2, related_pb2, response_pb2
from tests.requests import invoke, serving, sync_request


def by(name):
    """Returns a hook with its name in the status."""
    return hookloop.Composite(sync=lambda request: {"status": {"by": name}})


def request_for(name):
    request = sync_request()
    request.meta.hook = name
    return request


class NamedTest(unittest.TestCase):
    def refusal(self, channel, request):
        with self.assertRaises(grpc.RpcError) as caught:
            invoke(channel, "Sync", request)
        return caught.exception.code(), caught.exception.details()

    def test_the_name_in_the_request_selects_the_hook(self):
        hooks = [hookloop.Named("blog", by("blog")), hookloop.Named("shop", by("shop"))]
        with serving(*hooks) as (channel, _):
            for name in ("blog", "shop"):
                response = invoke(channel, "Sync", request_for(name))
                self.assertEqual(response.status, b'{"by":"%s"}' % name.encode())
            has = '"blog", "shop"'
            self.assertEqual(
                self.refusal(channel, request_for("blgo")),
                (
                    grpc.StatusCode.NOT_FOUND,
                    f'this server has no composite hook "blgo"; it has {has}',
                ),
            )
            self.assertEqual(
                self.refusal(channel, sync_request()),
                (
                    grpc.StatusCode.NOT_FOUND,
                    f"the request names no hook, and this server has several composite hooks: {has}"
                    "; name one in the field grpc.hook of the controller's spec",
                ),
            )

    def test_without_a_name_the_only_hook_answers(self):
        for hooks in ([by("it")], [hookloop.Named("it", by("it"))]):
            with serving(*hooks) as (channel, _):
                response = invoke(channel, "Sync", sync_request())
                self.assertEqual(response.status, b'{"by":"it"}')

    def test_invalid_names(self):
        cases = {
            'two composite hooks have the name "a"': ["a", "a"],
            "the name of a composite hook is 'a b'": ["a b"],
        }
        for text, names in cases.items():
            with self.assertRaisesRegex(ValueError, text):
                hookloop.Server(*(hookloop.Named(name, by(name)) for name in names))
        with self.assertRaisesRegex(ValueError, "two composite hooks have no name"):
            hookloop.Server(by("a"), by("b"))


class FeaturesTest(unittest.TestCase):
    def test_each_feature_alone(self):
        rule = related_pb2.RelatedResourceRule(name="a")
        details = response_pb2.ResponseDetails
        cases = {
            "conditions": details(conditions=[response_pb2.Condition()]),
            "events": details(events=[response_pb2.Event()]),
            "requirements": details(requirements=[related_pb2.RelatedResourceRule()]),
            "results": details(results=[response_pb2.Result()]),
        }
        for name, found in cases.items():
            message = composite_pb2.SyncResponse(details=found)
            self.assertEqual(features.used(message, []), [name])
        named = composite_pb2.CustomizeResponse(related_resources=[rule])
        self.assertEqual(features.used(named, []), ["named_rules"])
        plain = composite_pb2.SyncResponse()
        waits = desired_pb2.DesiredObject(depends_on=[desired_pb2.Dependency()])
        ready = desired_pb2.DesiredObject(ready=False)
        self.assertEqual(features.used(plain, [waits]), ["depends_on"])
        self.assertEqual(features.used(plain, [ready]), ["ready"])
        self.assertEqual(features.used(plain, [desired_pb2.DesiredObject()]), [])

    def test_a_feature_that_the_engine_does_not_honour_is_refused(self):
        event = {"type": "Normal", "reason": "Seen", "message": ""}
        hook = hookloop.Composite(sync=lambda request: {"events": [event]})
        request = sync_request()
        request.meta.engine_version = "v0.0.9"
        request.meta.features.append("conditions")
        with serving(hook) as (channel, _):
            with self.assertRaises(grpc.RpcError) as caught:
                invoke(channel, "Sync", request)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertEqual(
                caught.exception.details(),
                'the response uses the feature "events", which the engine v0.0.9 does not honour; '
                "it honours conditions",
            )
            request.meta.features.append("events")
            response = invoke(channel, "Sync", request)
            self.assertEqual(list(response.meta.features), ["events"])
