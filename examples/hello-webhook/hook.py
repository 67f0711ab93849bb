#!/usr/bin/env python3
"""The hook of the hello-webhook controller: a function from the observed to the desired objects."""

import argparse
import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LABEL = "hello.example.com/name"


def sync(request):
    """Return the desired objects for one HelloWorld: a page, a web server, a Service, and a Pod
    that greets once."""
    name = request["parent"]["metadata"]["name"]
    spec = request["parent"].get("spec", {})
    greeting = f"Hello, {spec.get('who', 'World')}!"
    children = [
        config_map(name, greeting),
        deployment(name, greeting, spec.get("replicas", 1)),
        service(name),
        pod(name, greeting),
    ]
    return {"status": status(request["children"], greeting), "children": children}


def status(observed, greeting):
    """Return the status of the observed objects."""
    servers = observed["Deployment.apps/v1"].values()
    ready = sum(d.get("status", {}).get("readyReplicas", 0) for d in servers)
    wanted = sum(d["spec"]["replicas"] for d in servers)
    return {
        "greeting": greeting,
        "children": sum(len(group) for group in observed.values()),
        "ready": f"{ready}/{wanted}",
    }


def config_map(name, greeting):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"index.html": greeting + "\n"},
    }


def deployment(name, greeting, replicas):
    labels = {LABEL: name}
    server = {
        "name": "server",
        "image": "busybox:1.36",
        "command": ["httpd", "-f", "-p", "8080", "-h", "/www"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "volumeMounts": [{"name": "page", "mountPath": "/www"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                # The annotation makes the Deployment roll when the page changes.
                "metadata": {"labels": labels, "annotations": {"hello.example.com/greeting": greeting}},
                "spec": {
                    "containers": [server],
                    "volumes": [{"name": "page", "configMap": {"name": name}}],
                },
            },
        },
    }


def service(name):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "selector": {LABEL: name},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def pod(name, greeting):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": "hello", "image": "busybox:1.36", "command": ["echo", greeting]}],
        },
    }


class Handler(BaseHTTPRequestHandler):
    """Serves sync() as a JSON webhook."""

    protocol_version = "HTTP/1.1"  # keeps connections open between calls
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/sync":
            return self.reply(404, {"error": f"no hook at {self.path}; there is one at /sync"})
        try:
            answer = sync(json.loads(body))
        except Exception as error:  # the engine shows the text on the HelloWorld and retries
            return self.reply(500, {"error": f"{type(error).__name__}: {error}"})
        return self.reply(200, answer)

    def reply(self, code, answer):
        data = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code="-", size="-"):
        self.log_message('"%s" %s trace_id=%s', self.requestline, int(code), self.trace_id())

    def trace_id(self):
        """The trace of this call (W3C traceparent: version, trace id, span id, flags)."""
        parts = self.headers.get("traceparent", "").split("-")
        return parts[1] if len(parts) == 4 else "-"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    host_help = "address to listen on (default: %(default)s)"
    port_help = "port to listen on; 0 takes a free one (default: %(default)s)"
    parser.add_argument("--host", default="127.0.0.1", help=host_help)
    parser.add_argument("--port", type=int, default=8080, help=port_help)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server((arguments.host, arguments.port), Handler) as server:
        host, port = server.server_address[:2]
        print(f"listening on http://{host}:{port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
