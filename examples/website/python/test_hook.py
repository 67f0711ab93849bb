"""The hook is a function: a test asks it. Run with PYTHONPATH=../../../sdk/python python3 -m unittest"""

import unittest

from hook import sync
from hookloop.testing import call

WEBSITE = {
    "apiVersion": "demo.example.com/v1", "kind": "Website", "metadata": {"name": "shop", "namespace": "web"},
    "spec": {"html": {"index.html": "<h1>Open</h1>"}, "replicas": 2},
}


def ask(ready=None, **spec):
    """The answer about a Website whose Deployment, if there is one, has so many Pods that are ready."""
    objects = [WEBSITE | {"spec": WEBSITE["spec"] | spec}]
    if ready is not None:
        metadata = {"name": "shop", "namespace": "web"}
        objects.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "status": {"readyReplicas": ready}})
    return call(sync, objects, children=["ConfigMap.v1", "Deployment.apps/v1", "Service.v1"])


class Website(unittest.TestCase):
    def test_children_depend_on_each_other(self):
        pages, servers, service = ask()["children"]
        self.assertEqual(pages["data"], {"index.html": "<h1>Open</h1>"})
        self.assertEqual([d.kind for d in servers.depends_on], ["ConfigMap"])
        self.assertEqual([d.kind for d in service.depends_on], ["Deployment"])
        self.assertEqual({one.object["metadata"]["name"] for one in (servers, service)}, {"shop"})

    def test_new_pages_roll(self):
        templates = [ask(html=html)["children"][1].object["spec"]["template"] for html in ({"a": "1"}, {"a": "2"}, {"a": "2"})]
        self.assertNotEqual(templates[0], templates[1])
        self.assertEqual(templates[1], templates[2])

    def test_ready_when_all_servers_are(self):
        for ready, said in ((None, "False"), (1, "False"), (2, "True")):
            answer = ask(ready)
            self.assertEqual(answer["conditions"][0]["status"], said)
            self.assertEqual(answer["status"], {"url": "http://shop.web.svc", "replicas": 2, "ready": ready or 0})


if __name__ == "__main__":
    unittest.main()
