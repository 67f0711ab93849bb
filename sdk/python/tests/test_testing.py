"""The helper with which authors test their hooks."""

import pathlib
import tempfile
import unittest

from hookloop import child, dependency, testing
from hookloop.errors import InvalidAnswer

PARENT = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "shop", "namespace": "web"}}
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


class Calls(unittest.TestCase):
    def test_a_file_is_a_parent_and_its_children(self):
        def sync(request):
            self.assertEqual(request["parent"]["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z")
            return {"status": {"n": request["parent"]["spec"]["n"], "pods": list(request["children"]["Pod.v1"])}}

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "website.yaml"
            file.write_text(YAML, encoding="utf-8")
            self.assertEqual(testing.call(sync, str(file)), {"status": {"n": 9007199254740993, "pods": ["a"]}, "children": []})

    def test_groups_without_an_object_and_related_objects(self):
        def sync(request):
            self.assertEqual(request["children"], {"Deployment.apps/v1": {}})
            self.assertEqual(list(request["related"]["configmaps.v1"]), ["other/a"])
            return {"resyncAfterSeconds": 0.5, "finalized": request["finalizing"]}

        related = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}}]
        got = testing.call(sync, [PARENT], children=["Deployment.apps/v1"], related={"configmaps.v1": related}, finalizing=True)
        self.assertEqual(got, {"children": [], "resyncAfterSeconds": 0.5, "finalized": True})

    def test_what_answers_say_beside_children(self):
        answer = {
            "children": [child(PARENT, ready=True, depends_on=[dependency("v1", "Pod", "a")])],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "all"}],
            "events": [{"type": "Warning", "reason": "Late", "message": "by a day"}],
            "results": [{"severity": "Info", "reason": "Fine", "message": "so far"}],
            "requirements": [{"name": "pages", "apiVersion": "v1", "resource": "configmaps"}],
        }
        self.assertEqual(testing.call(lambda request: answer, [PARENT]), answer)

    def test_a_mistake_in_an_answer_shows(self):
        with self.assertRaisesRegex(InvalidAnswer, "childs"):
            testing.call(lambda request: {"childs": []}, [PARENT])

    def test_decorators_and_rules(self):
        got = testing.decorate(lambda request: {"labels": {"a": request["object"]["kind"], "b": None}}, [PARENT])
        self.assertEqual(got, {"attachments": [], "labels": {"a": "Website", "b": None}})
        rules = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps"}]}
        self.assertEqual(testing.customize(lambda request: rules, [PARENT]), rules)

    def test_objects_that_are_none(self):
        for objects, text in (([], "expected the parent"), ([{"kind": "Pod"}], "has no apiVersion")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                testing.call(lambda request: {}, objects)
