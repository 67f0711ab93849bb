#!/usr/bin/env python3
"""Serves the functions of a Python file as webhooks: sync, finalize, customize. It needs only the
standard library.

python3 serve.py indexed-job/hook.py calls sync(request) for POST /sync, and so on. Requests and
responses are decoded JSON: dicts, lists, strings, numbers. An exception becomes status 500 with its
text.
"""

import argparse
import importlib.util
import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def load(path):
    """Load a Python file as a module."""
    spec = importlib.util.spec_from_file_location("hook", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hooks = None

    def do_POST(self):
        hook = getattr(self.hooks, self.path.strip("/"), None)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not callable(hook):
            self.answer(404, {"error": f"no hook at {self.path}"})
            return
        try:
            self.answer(200, hook(request))
        except Exception as e:  # the engine shows the text on the parent
            self.answer(500, {"error": f"{type(e).__name__}: {e}"})

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a Python file with sync, finalize or customize")
    parser.add_argument("--host", default="127.0.0.1")
    port = int(os.environ.get("PORT", 8080))
    parser.add_argument("--port", type=int, default=port, help="0 takes a free one")
    args = parser.parse_args()
    Handler.hooks = load(args.file)
    server = ThreadingHTTPServer((args.host, args.port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"listening on http://{args.host}:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
