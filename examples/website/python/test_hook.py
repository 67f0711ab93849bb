"""Tests of the hook, which call its function.

Run with PYTHONPATH=../../../sdk/python python3 -m unittest
"""

import unittest

from hook import sync
from hookloop.testing import call

WEBSITE = {
    "apiVersion": "demo.example.com/v1",
    "kind": "Website",
    "metadata": {"name": "shop", "namespace": "web"},
    "spec": {"html": {"index.html": "<h1>Open</h1>"}, "replicas": 2},
}


def respond(ready=None, **spec):
    """Returns the response for a Website. ready is the number of ready Pods of its Deployment; with
    None there is no Deployment."""
    objects = [WEBSITE | {"spec": WEBSITE["spec"] | spec}]
    if ready is not None:
        metadata = {"name": "shop", "namespace": "web"}
        identity = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        objects.append(identity | {"status": {"readyReplicas": ready}})
    return call(sync, objects, children=["ConfigMap.v1", "Deployment.apps/v1", "Service.v1"])


class Website(unittest.TestCase):
    def test_children_depend_on_each_other(self):
        pages, servers, service = respond()["children"]
        self.assertEqual(pages["data"], {"index.html": "<h1>Open</h1>"})
        self.assertEqual([d.kind for d in servers.depends_on], ["ConfigMap"])
        self.assertEqual([d.kind for d in service.depends_on], ["Deployment"])
        names = {child.object["metadata"]["name"] for child in (servers, service)}
        self.assertEqual(names, {"shop"})

    def test_new_pages_roll(self):
        templates = [
            respond(html=html)["children"][1].object["spec"]["template"]
            for html in ({"a": "1"}, {"a": "2"}, {"a": "2"})
        ]
        self.assertNotEqual(templates[0], templates[1])
        self.assertEqual(templates[1], templates[2])

    def test_ready_when_all_servers_are(self):
        for ready, status in ((None, "False"), (1, "False"), (2, "True")):
            response = respond(ready)
            expected = {"url": "http://shop.web.svc", "replicas": 2, "ready": ready or 0}
            self.assertEqual(response["conditions"][0]["status"], status)
            self.assertEqual(response["status"], expected)


if __name__ == "__main__":
    unittest.main()
