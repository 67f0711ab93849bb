"""Hooks of Hookloop controllers in Python.

A hook is a function from the observed state of one parent to its desired state; serve is a whole program around it:

    from hookloop import Composite, serve

    def sync(request):
        name = request["parent"]["metadata"]["name"]
        return {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}]}

    serve(Composite(sync=sync))

The function is level-triggered: it may be asked the same question again at any time and should answer it the same way. It is called
concurrently, in threads, for different parents. It needs neither a client of the API server nor a server to be tested: hookloop.testing
calls it.

Requests and answers are dicts of the form that webhooks know, so that one function serves all transports: webhooks, single calls, and
streams, which the engine opens (Server) or the hook (attach). Data comes from the engine's requests under the contract, packages
hookloop.hook.v1 and hookloop.stream.v1 of proto. Unit tests cover the translation and the stream's state machine, and tests over a
loopback connection servers and attachments.
"""

from hookloop.attachment import Attachment, Intercept, attach
from hookloop.errors import NotServed, Reject, RelatedUnknown, RetryAfter, TriggerError
from hookloop.gateway import Gateway, trigger
from hookloop.hooks import Composite, Decorator, child, dependency
from hookloop.program import serve
from hookloop.related import require_related
from hookloop.server import Server

__all__ = [
    "Attachment", "Composite", "Decorator", "Gateway", "Intercept", "NotServed", "Reject", "RelatedUnknown", "RetryAfter", "Server",
    "TriggerError", "attach", "child", "dependency", "require_related", "serve", "trigger",
]
