#!/usr/bin/env python3
"""A hook in one file: it makes a ConfigMap with a greeting for each HelloWorld."""

import json
import sys


def sync(request):
    """Return the status and the children of one HelloWorld."""
    parent = request["parent"]
    greeting = f"Hello, {parent.get('spec', {}).get('who', 'World')}!"
    page = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": parent["metadata"]["name"]},
        "data": {"index.html": greeting},
    }
    return {"status": {"greeting": greeting}, "children": [page]}


for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = {"response": sync(question["request"])}
    except Exception as error:  # the engine shows the text on the HelloWorld and asks again
        answer = {"error": {"message": f"{type(error).__name__}: {error}"}}
    print(json.dumps({"id": question["id"], **answer}), flush=True)
