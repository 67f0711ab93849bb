"""Map hooks, over a loopback connection: single calls and streams."""

import json
import unittest

import grpc

import hookloop
from hookloop.hook.v1 import response_pb2
from hookloop.map.v1 import map_pb2
from tests.requests import BIG, invoke, map_request, message, serving
from tests.test_stream import streaming


def copy(request):
    """Returns one output with values of the request."""
    found = request["input"]
    output = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": found["metadata"]["name"] if found else "gone"},
        "n": found["spec"]["n"] if found else 0,
        "key": request["mapKey"],
        "observed": sorted(request["outputs"]["ConfigMap.v1"]),
        "finalizing": request["finalizing"],
    }
    event = {"reason": "Mapped", "message": request["mapKey"]}
    return {"outputs": [output], "events": [event], "finalized": found is None}


def keep_one(request):
    """Keeps the output "one" for a minute."""
    return {"outputs": [request["outputs"]["ConfigMap.v1"]["one"]], "resyncAfterSeconds": 60}


def rules(request):
    name = request["parent"]["metadata"]["name"]
    return {"relatedResources": [{"apiVersion": "v1", "resource": "secrets", "names": [name]}]}


MAPPER = hookloop.Mapper(map=copy, tombstone=keep_one, finalize=copy, customize=rules)
INPUT = message("v1", "Pod", "shop", "in")
CALLS = (
    ("Map", map_request(input=INPUT)),
    ("Tombstone", map_request(map_pb2.TombstoneRequest)),
    ("Finalize", map_request(map_pb2.FinalizeRequest, input=INPUT)),
    ("Finalize", map_request(map_pb2.FinalizeRequest)),
)


class Calls(unittest.TestCase):
    def test_the_requests_of_functions(self):
        with serving(MAPPER) as (channel, _):
            mapped, kept, _, finalized = (invoke(channel, *call) for call in CALLS)
        (output,) = mapped.outputs
        self.assertEqual(
            json.loads(output.body),
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "in"},
                "n": BIG,
                "key": "Pod/shop/in",
                "observed": ["one", "two"],
                "finalizing": False,
            },
        )
        self.assertEqual(
            mapped.details.events[0],
            response_pb2.Event(
                type=response_pb2.EVENT_TYPE_NORMAL, reason="Mapped", message="Pod/shop/in"
            ),
        )
        (output,) = kept.outputs
        metadata = {"namespace": "shop", "name": "one"}
        expected = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        self.assertEqual(json.loads(output.body), expected)
        self.assertEqual(kept.details.resync_after.seconds, 60)
        self.assertTrue(finalized.finalized)
        self.assertEqual(json.loads(finalized.outputs[0].body)["metadata"]["name"], "gone")

    def test_customize(self):
        request = map_pb2.CustomizeRequest(
            controller=message("metacontroller.k8s.io/v1alpha1", "MapController", "", "hello"),
            parent=message("example.com/v1", "Greeting", "shop", "hi"),
        )
        with serving(MAPPER) as (channel, _):
            response = invoke(channel, "Customize", request)
        self.assertEqual(list(response.related_resources[0].names), ["hi"])

    def test_responses_over_a_stream_are_those_of_single_calls(self):
        with streaming(MAPPER) as (stream, channel, _):
            for number, (method, request) in enumerate(CALLS):
                with self.subTest(method, number=number):
                    over_stream = stream.invoke(request, subject=f"part {number}")
                    self.assertEqual(over_stream, invoke(channel, method, request))

    def test_functions_that_are_missing(self):
        hook = hookloop.Mapper(map=copy)
        with streaming(hook) as (stream, channel, _):
            self.assertEqual(stream.welcome.methods, ["/hookloop.map.v1.MapHookService/Map"])
            with self.assertRaises(grpc.RpcError) as raised:
                invoke(channel, *CALLS[1])
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("no tombstone function", raised.exception.details())

    def test_a_map_request_without_an_input_is_invalid(self):
        with serving(MAPPER) as (channel, _), self.assertRaises(grpc.RpcError) as raised:
            invoke(channel, "Map", map_request())
        self.assertIn("input is missing", raised.exception.details())

    def test_invalid_responses(self):
        for method, response, text in (
            ("Map", {}, "outputs: is missing"),
            ("Map", {"outputs": [], "status": {}}, "the field 'status'"),
            ("Map", {"outputs": [], "conditions": []}, "the field 'conditions'"),
            ("Map", {"outputs": {}}, "outputs is dict, expected a list"),
            ("Tombstone", {"outputs": [], "finalized": True}, "the field 'finalized'"),
            ("Tombstone", {"outputs": [{"kind": "Pod"}]}, "outputs[0]: apiVersion is None"),
            ("Finalize", {"outputs": [], "finalized": 1}, "finalized is 1"),
        ):
            hook = hookloop.Mapper(**{method.lower(): lambda _, response=response: response})
            with self.subTest(text), serving(hook) as (channel, _):
                with self.assertRaises(grpc.RpcError) as raised:
                    invoke(channel, *next(call for call in CALLS if call[0] == method))
                self.assertIn(text, raised.exception.details())

