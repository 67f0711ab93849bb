"""The helper for authors' tests of their hooks."""

import json
import pathlib
import tempfile
import unittest

from hookloop import Child, Dependency, testing
from hookloop.errors import InvalidResponse

PARENT = {
    "apiVersion": "example.com/v1",
    "kind": "Website",
    "metadata": {"name": "shop", "namespace": "web"},
}
PAGE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
YAML = """
apiVersion: example.com/v1
kind: Website
metadata: {name: shop, namespace: web, creationTimestamp: 2026-01-02T03:04:05Z}
spec: {n: 9007199254740993}
---
# only a comment
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: web}
"""


# The recording that tests the helpers of all SDKs and the engine.
SAMPLE = pathlib.Path(__file__).parents[2] / "testdata" / "recording.json"


class Replays(unittest.TestCase):
    def test_a_recording_is_a_question(self):
        def sync(request):
            login = request["related"]["login"]["login"]
            page = {**PAGE, "metadata": {"name": "pages"}, "data": login["data"]}
            count = request["parent"]["spec"]["count"]
            pages = len(request["children"]["ConfigMap.v1"])
            return {"status": {"count": count, "pages": pages}, "children": [page]}

        response = testing.replay(sync, SAMPLE)
        self.assertEqual(response["status"], {"count": 9007199254740993, "pages": 1})
        self.assertEqual(response["children"][0]["data"], {"password": "bWFza2VkLTE="})

    def test_another_file(self):
        text = SAMPLE.read_text(encoding="utf-8")
        for old, new, expected in [
            ("recording/v1", "recording/v2", "got 'hookloop.dev/recording/v2', expected"),
            ("{", "no recording", "is no recording.*expected a file of hookloop serve"),
            (text[len(text) // 2 :], "", "is no recording.*expected a file of hookloop serve"),
            ('"kind": "composite"', '"kind": "other"', "kind: got 'other', expected composite"),
            ('"operation": "sync"', '"operation": "customize"', "operation: got 'customize'"),
        ]:
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "recording.json"
                file.write_text(text.replace(old, new, 1), encoding="utf-8")
                with self.assertRaisesRegex(ValueError, expected):
                    testing.replay(lambda request: {}, file)
                with self.assertRaisesRegex(ValueError, "is a folder, expected a file of"):
                    testing.replay(lambda request: {}, folder)


class Calls(unittest.TestCase):
    def test_a_file_is_a_parent_and_its_children(self):
        def sync(request):
            self.assertEqual(
                request["parent"]["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z"
            )
            return {
                "status": {
                    "n": request["parent"]["spec"]["n"],
                    "pods": list(request["children"]["Pod.v1"]),
                }
            }

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "website.yaml"
            file.write_text(YAML, encoding="utf-8")
            self.assertEqual(
                testing.call(sync, str(file)),
                {"status": {"n": 9007199254740993, "pods": ["a"]}, "children": []},
            )

    def test_groups_without_an_object_and_related_objects(self):
        def sync(request):
            self.assertEqual(request["children"], {"Deployment.apps/v1": {}})
            self.assertEqual(list(request["related"]["configmaps.v1"]), ["other/a"])
            return {"resyncAfterSeconds": 0.5, "finalized": request["finalizing"]}

        related = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "other"},
            }
        ]
        got = testing.call(
            sync,
            [PARENT],
            children=["Deployment.apps/v1"],
            related={"configmaps.v1": related},
            finalizing=True,
        )
        self.assertEqual(got, {"children": [], "resyncAfterSeconds": 0.5, "finalized": True})

    def test_remarks(self):
        response = {
            "children": [Child(PAGE, ready=True, depends_on=[Dependency("v1", "Pod", "a")]), POD],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "all"}],
            "events": [{"type": "Warning", "reason": "Late", "message": "by a day"}],
            "results": [{"severity": "Info", "reason": "Fine", "message": "so far"}],
            "requirements": [{"name": "pages", "apiVersion": "v1", "resource": "configmaps"}],
        }
        self.assertEqual(
            testing.call(lambda request: response, [PARENT], children=["ConfigMap.v1", "Pod.v1"]),
            response,
        )

    def test_a_mistake_in_a_response_is_reported(self):
        with self.assertRaisesRegex(InvalidResponse, "childs"):
            testing.call(lambda request: {"childs": []}, [PARENT])

    def test_decorators_and_rules(self):
        got = testing.decorate(
            lambda request: {"labels": {"a": request["object"]["kind"], "b": None}}, [PARENT]
        )
        self.assertEqual(got, {"attachments": [], "labels": {"a": "Website", "b": None}})
        rules = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps"}]}
        self.assertEqual(testing.customize(lambda request: rules, [PARENT]), rules)

    def test_invalid_objects(self):
        for objects, text in (
            ([], "expected the parent"),
            ([{"kind": "Pod"}], "has no apiVersion"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                testing.call(lambda request: {}, objects)


# The engine is tested with this table, too.
TABLE = json.loads(
    pathlib.Path(__file__)
    .parents[2]
    .joinpath("testdata", "answers.json")
    .read_text(encoding="utf-8")
)


# The hooks of other kinds that the table of map answers has cases of.
HOOKS = ("composite", "decorator")


class Answers(unittest.TestCase):
    def test_the_table_of_answers(self):
        for case in TABLE["cases"]:
            with self.subTest(case["name"]):
                error = self.error(case)
                self.assertEqual(bool(error), "error" in case, error)
                for part in case.get("error", []):
                    self.assertIn(part.lower(), error.lower())

    @staticmethod
    def error(case):
        parent = TABLE["parents"][case.get("parent", "namespaced")]
        response = functional(case)
        try:
            if case.get("hook") == "decorator":
                testing.decorate(lambda request: response, [parent], attachments=TABLE["declared"])
            else:
                testing.call(lambda request: response, [parent], children=TABLE["declared"])
        except InvalidResponse as error:
            return str(error)
        return ""

    def test_the_table_of_map_answers(self):
        for case in TABLE["map"]["cases"]:
            with self.subTest(case["name"]):
                error = self.map_error(case) if case.get("hook") not in HOOKS else self.error(case)
                self.assertEqual(bool(error), "error" in case, error)
                for part in case.get("error", []):
                    self.assertIn(part.lower(), error.lower())

    @staticmethod
    def map_error(case):
        table, response = TABLE["map"], functional(case)
        parent = TABLE["parents"][case.get("parent", "namespaced")]
        objects, kinds = [parent, *table["outputs"]], {"outputs": TABLE["declared"]}
        try:
            if case.get("hook") == "tombstone":
                testing.tombstone(
                    lambda request: response, objects, map_key=table["mapKey"], **kinds
                )
                return ""
            call = testing.finalize_input if case.get("hook") == "finalize" else testing.map_input
            call(lambda request: response, [parent, table["input"], *table["outputs"]], **kinds)
        except InvalidResponse as error:
            return str(error)
        return ""

    def test_invalid_kinds(self):
        for kind in ("Pod", "Pod.v1:cluster", ".v1"):
            with self.subTest(kind), self.assertRaisesRegex(
                ValueError, "expected one such as Pod.v1"
            ):
                testing.call(lambda request: {}, [PARENT], children=[kind])


def functional(case):
    """Returns a case's response as a function returns it: childStates become Child values."""
    response = dict(case["answer"])
    for field, count in case.get("repeat", {}).items():
        response[field] = response[field][:1] * count
    states = response.pop("childStates", [])
    for field in ("children", "attachments", "outputs"):
        if field in response and states:
            response[field] = [about(found, states) for found in response[field]]
    return response


def about(found, states):
    identity = {"apiVersion": found["apiVersion"], "kind": found["kind"], **found["metadata"]}
    for state in states:
        if identity == {
            name: state[name]
            for name in ("apiVersion", "kind", "name", "namespace")
            if name in state
        }:
            depends_on = [
                Dependency(
                    d["apiVersion"],
                    d["kind"],
                    d["name"],
                    namespace=d.get("namespace", ""),
                    condition=d.get("condition", ""),
                )
                for d in state.get("dependsOn", [])
            ]
            return Child(found, ready=state.get("ready"), depends_on=depends_on)
    return found
