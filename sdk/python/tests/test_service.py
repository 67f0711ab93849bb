"""The requests of functions and the encoding of their responses, over a loopback connection."""

import json
import logging
import sys
import unittest

import grpc

import hookloop
from hookloop import wellknown
from hookloop.composite.v1 import composite_pb2
from hookloop.hook.v1 import desired_pb2, related_pb2, response_pb2
from hookloop.rpc_status import Status
from tests.requests import BIG, invoke, customize_request, decorator_request, serving, sync_request

Operator = related_pb2.LabelSelectorRequirement


def desired(name, **fields):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} | fields


class Requests(unittest.TestCase):
    def invoke(self, check, request=None, method="Sync"):
        """Runs check in a function within a call. An exception of check reaches the test."""
        seen = []

        def function(request):
            seen.append(request)
            return {}

        request = request or sync_request()
        with serving(hookloop.Composite(sync=function, finalize=function, customize=function)) as (
            channel,
            _,
        ):
            invoke(channel, method, request)
        check(seen[0])

    def test_children_are_found_by_kind_and_name(self):
        def check(request):
            self.assertEqual(request["parent"]["spec"], {"n": BIG})
            self.assertEqual(request["controller"]["kind"], "CompositeController")
            self.assertEqual(set(request["children"]), {"Pod.v1", "Deployment.apps/v1"})
            self.assertEqual(set(request["children"]["Pod.v1"]), {"near", "other/far"})
            self.assertEqual(request["children"]["Deployment.apps/v1"], {})
            self.assertIs(request["finalizing"], False)

        self.invoke(check)

    def test_finalize_sets_finalizing(self):
        request = sync_request(composite_pb2.FinalizeRequest)
        self.invoke(lambda request: self.assertIs(request["finalizing"], True), request, "Finalize")

    def test_unknown_groups_do_not_look_empty(self):
        def check(request):
            related = request["related"]
            self.assertEqual(related["namespaces.v1"]["shop"]["kind"], "Namespace")
            response = {}
            shown = hookloop.require_related(
                request, response, {"name": "spaces", "apiVersion": "v1", "resource": "namespaces"}
            )
            self.assertEqual(shown, {})
            self.assertIsNone(
                hookloop.require_related(
                    request,
                    response,
                    {"name": "later", "apiVersion": "v1", "resource": "namespaces"},
                )
            )
            self.assertEqual(
                [rule["name"] for rule in response["requirements"]], ["spaces", "later"]
            )
            with self.assertRaisesRegex(ValueError, "name is None"):
                hookloop.require_related(request, response, {"resource": "namespaces"})
            for look in (
                len,
                list,
                bool,
                lambda group: group["a"],
                lambda group: group.get("a"),
                lambda group: "a" in group,
            ):
                with self.assertRaisesRegex(
                    hookloop.NotServed, "certificates.cert-manager.io/v1.*no certificates"
                ):
                    look(related["certificates.cert-manager.io/v1"])
                with self.assertRaisesRegex(
                    hookloop.RelatedUnknown, "secrets.v1 is not known: not allowed"
                ):
                    look(related["secrets.v1"])

        self.invoke(check)

    def test_an_invalid_request(self):
        cases = {
            "parent is missing": lambda r: r.ClearField("parent"),
            'Greeting "hi": encoding is 7, expected ENCODING_JSON': lambda r: setattr(
                r.parent, "encoding", 7
            ),
            'Greeting "hi": Expecting value': lambda r: setattr(r.parent, "body", b"{"[:0]),
            'Greeting "hi": got list, expected a JSON object': lambda r: setattr(
                r.parent, "body", b"[]"
            ),
        }
        for text, spoil in cases.items():
            with self.subTest(text), self.assertLogs("hookloop"), self.assertRaises(
                grpc.RpcError
            ) as raised:
                request = sync_request()
                spoil(request)
                self.invoke(None, request)
            self.assertIn(text, raised.exception.details())


class Responses(unittest.TestCase):
    def respond(self, response, method="Sync", request=None):
        function = (
            (lambda _: response) if not isinstance(response, Exception) else self.raising(response)
        )
        hooks = {method.lower(): function}
        with serving(hookloop.Composite(**hooks), hookloop.Decorator(**hooks)) as (channel, _):
            return invoke(channel, method, request or sync_request())

    @staticmethod
    def raising(error):
        def function(_):
            raise error

        return function

    def test_children_and_status(self):
        got = self.respond(
            {
                "status": {"n": BIG},
                "children": [desired("a", data={"n": BIG}), desired("b")],
                "resyncAfterSeconds": 1.5,
            }
        )
        self.assertEqual(got.status, b'{"n":9007199254740993}')
        self.assertEqual(
            [json.loads(child.body)["metadata"]["name"] for child in got.children], ["a", "b"]
        )
        self.assertIn(b'"n":9007199254740993', got.children[0].body)
        self.assertEqual(
            (got.details.resync_after.seconds, got.details.resync_after.nanos), (1, 500_000_000)
        )

    def test_an_empty_response(self):
        got = self.respond({})
        self.assertFalse(
            got.HasField("status") or got.details.HasField("resync_after") or got.children
        )

    def test_finalized(self):
        request = sync_request(composite_pb2.FinalizeRequest)
        self.assertTrue(self.respond({"finalized": True}, "Finalize", request).finalized)

    def test_labels_are_set_and_removed(self):
        response = {
            "labels": {"a": "1", "b": None},
            "annotations": {"c": ""},
            "attachments": [desired("x")],
        }
        got = self.respond(response, request=decorator_request())
        self.assertEqual((dict(got.labels.set), list(got.labels.remove)), ({"a": "1"}, ["b"]))
        self.assertEqual((dict(got.annotations.set), list(got.annotations.remove)), ({"c": ""}, []))
        self.assertEqual(len(got.attachments), 1)

    def test_rules(self):
        rules = [
            {"apiVersion": "v1", "resource": "configmaps", "namespace": "shop", "names": ["a"]},
            {
                "apiVersion": "v1",
                "resource": "secrets",
                "labelSelector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"]}],
                },
                "namespaceSelector": {},
            },
        ]
        got = self.respond(
            {"relatedResources": rules}, "Customize", customize_request()
        ).related_resources
        self.assertEqual(
            (got[0].resource, got[0].namespace, list(got[0].names)), ("configmaps", "shop", ["a"])
        )
        self.assertFalse(got[0].HasField("label_selector"))
        self.assertTrue(got[1].HasField("namespace_selector"))
        self.assertEqual(
            got[1].label_selector.match_expressions[0],
            Operator(key="k", operator=Operator.OPERATOR_NOT_IN, values=["v"]),
        )

    def test_conditions_events_results_and_requirements(self):
        response = {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "AllUp", "message": "2 of 2"},
                {"type": "Odd", "status": "Unknown"},
            ],
            "events": [
                {"reason": "Scaled", "message": "to 2"},
                {"type": "Warning", "reason": "Slow"},
            ],
            "results": [
                {"severity": "Info", "message": "fine"},
                {"severity": "Fatal", "reason": "Broken"},
            ],
            "requirements": [
                {"name": "pages", "apiVersion": "v1", "resource": "configmaps", "names": ["a"]}
            ],
        }
        for method, request in (
            ("Sync", sync_request()),
            ("Finalize", sync_request(composite_pb2.FinalizeRequest)),
        ):
            got = self.respond(response, method, request).details
            self.assertEqual(
                [(c.type, c.status, c.reason, c.message) for c in got.conditions],
                [
                    ("Ready", response_pb2.CONDITION_STATUS_TRUE, "AllUp", "2 of 2"),
                    ("Odd", response_pb2.CONDITION_STATUS_UNKNOWN, "", ""),
                ],
            )
            self.assertEqual(
                [(e.type, e.reason, e.message) for e in got.events],
                [
                    (response_pb2.EVENT_TYPE_NORMAL, "Scaled", "to 2"),
                    (response_pb2.EVENT_TYPE_WARNING, "Slow", ""),
                ],
            )
            self.assertEqual(
                [(r.severity, r.reason, r.message) for r in got.results],
                [
                    (response_pb2.SEVERITY_INFO, "", "fine"),
                    (response_pb2.SEVERITY_FATAL, "Broken", ""),
                ],
            )
            self.assertEqual(
                [(r.name, r.resource, list(r.names)) for r in got.requirements],
                [("pages", "configmaps", ["a"])],
            )
        self.assertEqual(
            self.respond({"conditions": response["conditions"]}, request=decorator_request())
            .details.conditions[0]
            .type,
            "Ready",
        )

    def test_members_of_enumerations_are_their_values(self):
        got = self.respond(
            {
                "conditions": [
                    {"type": "Ready", "status": hookloop.ConditionStatus.FALSE, "reason": "Slow"}
                ],
                "events": [{"type": hookloop.EventType.WARNING, "reason": "Slow"}],
                "results": [{"severity": hookloop.Severity.FATAL, "reason": "Broken"}],
                "status": {"phase": hookloop.Severity.INFO},
            }
        )
        self.assertEqual(got.details.conditions[0].status, response_pb2.CONDITION_STATUS_FALSE)
        self.assertEqual(got.details.events[0].type, response_pb2.EVENT_TYPE_WARNING)
        self.assertEqual(got.details.results[0].severity, response_pb2.SEVERITY_FATAL)
        self.assertEqual(json.loads(got.status), {"phase": "Info"})
        expression = {"key": "k", "operator": hookloop.Operator.EXISTS}
        rule = {
            "apiVersion": "v1",
            "resource": "pods",
            "labelSelector": {"matchExpressions": [expression]},
        }
        rules = self.respond(
            {"relatedResources": [rule]}, "Customize", customize_request()
        ).related_resources
        self.assertEqual(
            rules[0].label_selector.match_expressions[0].operator, Operator.OPERATOR_EXISTS
        )

    def test_children_have_dependencies_and_readiness(self):
        ready = hookloop.Dependency("v1", "ConfigMap", "a", namespace="shop", condition="Ready")
        got = self.respond(
            {
                "children": [
                    hookloop.Child(desired("b"), ready=False, depends_on=[ready]),
                    hookloop.Child(desired("c")),
                    desired("d"),
                ]
            }
        ).children
        self.assertEqual(
            [child.ready if child.HasField("ready") else None for child in got], [False, None, None]
        )
        self.assertEqual(
            list(got[0].depends_on),
            [
                desired_pb2.Dependency(
                    api_version="v1",
                    kind="ConfigMap",
                    name="a",
                    namespace="shop",
                    condition="Ready",
                )
            ],
        )
        self.assertEqual(
            [json.loads(child.body)["metadata"]["name"] for child in got], ["b", "c", "d"]
        )

    def test_errors_name_the_invalid_remark(self):
        Dependency, Child = hookloop.Dependency, hookloop.Child
        cases = [
            ({"conditions": {}}, "conditions is dict, expected a list of conditions"),
            (
                {"conditions": [{"type": ""}]},
                'conditions[0].type is "", expected a string that is not empty',
            ),
            (
                {"conditions": [{"type": "A", "status": True}]},
                "conditions[0].status is True, expected one of True, False, Unknown",
            ),
            (
                {"conditions": [{"type": "A", "status": "true"}]},
                "conditions[0].status is 'true', expected one of True, False, Unknown",
            ),
            (
                {"conditions": [{"type": "A", "status": "True"}] * 2},
                "conditions[1]: type 'A' occurs twice, expected each type once",
            ),
            (
                {"conditions": [{"type": "A", "status": "True", "observedGeneration": 1}]},
                "conditions[0] has the field 'observedGeneration'",
            ),
            (
                {"conditions": [{"type": "A", "status": "True", "reason": 1}]},
                "conditions[0].reason is 1, expected a string",
            ),
            ({"events": ["a"]}, "events[0] is str, expected a dict"),
            (
                {"events": [{"type": "Error", "reason": "A"}]},
                "events[0].type is 'Error', expected one of Normal, Warning",
            ),
            (
                {"events": [{"message": "a"}]},
                "events[0].reason is None, expected a string that is not empty",
            ),
            (
                {"results": [{"severity": "bad"}]},
                "results[0].severity is 'bad', expected one of Info, Warning, Fatal",
            ),
            (
                {"requirements": [{"resource": 1}]},
                "requirements[0].resource is 1, expected a string",
            ),
            (
                {"children": [Child("a")]},
                "children[0] is str, expected a dict with apiVersion, kind and metadata.name",
            ),
            (
                {"children": [Child(desired("a"), ready="yes")]},
                "children[0]: ready is str, expected True, False or None",
            ),
            (
                {"children": [Child(desired("a"), depends_on=["b"])]},
                "children[0]: depends_on[0] is str, expected a Dependency",
            ),
            (
                {"children": [Child(desired("a"), depends_on=[Dependency("v1", "", "b")])]},
                'children[0]: depends_on[0].kind is "", expected a string that is not empty',
            ),
        ]
        self.check(cases, "Sync", sync_request)

    def test_errors_name_the_invalid_field(self):
        cycle = []
        cycle.append(cycle)
        cases = [
            (None, "returned None, expected a dict"),
            ([], "the response is list, expected a dict"),
            (
                {"childen": []},
                "the response has the field 'childen', expected one of children, conditions, "
                "events, finalized, requirements, results, "
                "resyncAfterSeconds, status",
            ),
            ({"children": {}}, "children is dict, expected a list of objects"),
            (
                {"children": ["a"]},
                "children[0] is str, expected a dict with apiVersion, kind and metadata.name",
            ),
            (
                {"children": [desired("a"), {"kind": "Pod"}]},
                "children[1]: apiVersion is None, expected a string",
            ),
            ({"children": [desired("")]}, 'children[0]: metadata.name is "", expected a string'),
            ({"children": [desired("a", data=float("nan"))]}, "children[0] is no JSON"),
            ({"children": [desired("a", data=cycle)]}, "children[0] is no JSON"),
            ({"children": [desired("a", data=object())]}, "children[0] is no JSON"),
            ({"status": 5}, "status is 5, expected a dict"),
            ({"resyncAfterSeconds": -1}, "resyncAfterSeconds is -1, expected a number from 0"),
            ({"resyncAfterSeconds": float("nan")}, "resyncAfterSeconds is nan"),
            ({"resyncAfterSeconds": True}, "resyncAfterSeconds is True"),
            ({"finalized": "false"}, "finalized is str, expected True or False"),
        ]
        self.check(cases, "Sync", sync_request)

    def test_errors_name_the_invalid_patch(self):
        cases = [
            ({"labels": {"a": 1}}, "labels['a'] is 1, expected a string, or None to remove it"),
            ({"annotations": []}, "annotations is list, expected a dict"),
            (
                {"children": []},
                "the response has the field 'children', expected one of annotations, attachments, "
                "conditions",
            ),
        ]
        self.check(cases, "Sync", decorator_request)

    def test_errors_name_the_invalid_rule(self):
        def requirement(**fields):
            return {"relatedResources": [{"labelSelector": {"matchExpressions": [fields]}}]}

        cases = [
            ({"relatedResources": {}}, "relatedResources is dict, expected a list of rules"),
            ({"relatedResources": [None]}, "relatedResources[0] is None, expected a dict"),
            (
                {"relatedResources": [{"name": "a"}]},
                "relatedResources[0] has the field 'name', expected one of apiVersion",
            ),
            (
                {"relatedResources": [{"names": "a"}]},
                "relatedResources[0].names is str, expected a list of strings",
            ),
            (
                {"relatedResources": [{"resource": 1}]},
                "relatedResources[0].resource is 1, expected a string",
            ),
            (
                requirement(key="k", operator="Is"),
                "matchExpressions[0].operator is 'Is', expected one of In, NotIn",
            ),
            (
                {"relatedResources": [{"labelSelector": {"matchLabels": {"a": None}}}]},
                "matchLabels['a'] is None, expected a string",
            ),
        ]
        self.check(cases, "Customize", customize_request)

    def check(self, cases, method, request):
        for response, text in cases:
            with self.subTest(text), self.assertLogs("hookloop", logging.ERROR):
                with self.assertRaises(grpc.RpcError) as raised:
                    self.respond(response, method, request())
                self.assertEqual(raised.exception.code(), grpc.StatusCode.INTERNAL)
                self.assertIn(text, raised.exception.details())

    def test_an_exception_is_reported_and_logged(self):
        with self.assertLogs("hookloop", logging.ERROR) as logged, self.assertRaises(
            grpc.RpcError
        ) as raised:
            self.respond(KeyError("spec"))
        self.assertEqual(raised.exception.details(), "KeyError: 'spec'")
        (line,) = logged.output
        self.assertIn(
            "/hookloop.composite.v1.CompositeHookService/Sync of Greeting shop/hi failed", line
        )
        self.assertIn("Traceback", line)

    def test_reject_and_retry_after_are_not_logged(self):
        for error in (hookloop.Reject("Bad", "no"), hookloop.RetryAfter(1, "busy")):
            with self.assertNoLogs("hookloop") if hasattr(
                self, "assertNoLogs"
            ) else contextlib.nullcontext():
                with self.assertRaises(grpc.RpcError):
                    self.respond(error)

    def test_an_exit_ends_the_call_only(self):
        def function(_):
            sys.exit("enough")

        with serving(hookloop.Composite(sync=function)) as (channel, _), self.assertLogs(
            "hookloop"
        ):
            for _ in range(2):
                with self.assertRaises(grpc.RpcError) as raised:
                    invoke(channel, "Sync", sync_request())
                self.assertEqual(raised.exception.details(), "SystemExit: enough")

    def test_reject_carries_its_reason(self):
        code, detail = self.refused(
            hookloop.Reject("NoSuchPlan", "plan gold"),
            "ErrorInfo",
            wellknown.ErrorInfo,
            "plan gold",
        )
        self.assertEqual(code, grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual((detail.reason, detail.domain), ("NoSuchPlan", "hookloop.hook.v1"))

    def test_an_error_of_any_text_ends_only_its_call(self):
        for text in ("lone \ud800", "large " + "ü" * (1 << 20)):
            for error in (hookloop.Reject("Bad", text), ValueError(text)):
                with serving(hookloop.Composite(sync=self.raising(error))) as (channel, _):
                    for _ in range(2):  # the connection is open after the first
                        with self.assertRaises(grpc.RpcError) as raised:
                            invoke(channel, "Sync", sync_request())
                        details = raised.exception.details()
                        self.assertRegex(details, r"lone \?|large ü")
                        self.assertLessEqual(len(details.encode()), 1100)

    def test_retry_after_carries_its_time(self):
        code, detail = self.refused(
            hookloop.RetryAfter(2.25, "busy"), "RetryInfo", wellknown.RetryInfo, "busy"
        )
        self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual((detail.retry_delay.seconds, detail.retry_delay.nanos), (2, 250_000_000))
        with self.assertRaisesRegex(ValueError, "expected 0 or more"):
            hookloop.RetryAfter(-1, "never")
        with self.assertRaisesRegex(ValueError, "expected a word"):
            hookloop.Reject("", "nothing")

    def refused(self, error, name, kind, text):
        with self.assertRaises(grpc.RpcError) as raised:
            self.respond(error)
        self.assertEqual(raised.exception.details(), text)
        status = Status.FromString(
            dict(raised.exception.trailing_metadata())["grpc-status-details-bin"]
        )
        self.assertEqual((status.code, status.message), (raised.exception.code().value[0], text))
        self.assertEqual(status.details[0].type_url, f"type.googleapis.com/google.rpc.{name}")
        return raised.exception.code(), kind.FromString(status.details[0].value)

    def test_missing_functions_are_unimplemented(self):
        with serving(hookloop.Composite()) as (channel, _), self.assertRaises(
            grpc.RpcError
        ) as raised:
            invoke(channel, "Customize", customize_request())
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
