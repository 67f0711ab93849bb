"""A webhook that returns its parent's spec.answer, or spec.finally while the parent is deleted.

With spec.rules it returns an annotation with the names of the related objects.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        field = "finally" if request["finalizing"] else "answer"
        parent = request.get("parent") or request["object"]
        spec = parent.get("spec", {})
        answer = spec.get(field, {})
        if "rules" in spec:
            names = sorted(name for group in request["related"].values() for name in group)
            answer["annotations"] = {"seen": " ".join(names)}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


with Server(("127.0.0.1", 0), Handler) as server:
    print(f"http://127.0.0.1:{server.server_address[1]}/hook", flush=True)
    server.serve_forever()
