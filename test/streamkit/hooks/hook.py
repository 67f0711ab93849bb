"""The reference hook of docs/reference/checking-an-sdk.md on the SDK in Python."""

import argparse
import queue
import signal
import time

import hookloop
from hookloop import Composite, Reject, RetryAfter, Trigger, TriggerError

service = None  # the Server or the Attachment


def sync(request):
    spec = request["parent"]["spec"]
    time.sleep(spec.get("sleepMilliseconds", 0) / 1000)
    if spec.get("reject"):
        raise Reject("KitRejected", spec["reject"])
    if spec.get("retryAfterSeconds"):
        raise RetryAfter(spec["retryAfterSeconds"], "later")
    if spec.get("fail"):
        raise RuntimeError(spec["fail"])
    observed = request["children"]["ConfigMap.v1"]
    status = {
        "children": len(observed),
        "texts": {name: child["data"]["text"] for name, child in observed.items()},
        "related": len(request["related"].get("peers", {})),
    }
    if "number" in spec:
        status["number"] = spec["number"]
    if "blob" in spec:
        status["blobBytes"] = len(spec["blob"].encode())
    if "trigger" in spec:
        status |= trigger(request, spec["trigger"])
    repeat = spec.get("repeat", 1)
    return {"status": status, "children": [child(e, repeat) for e in spec.get("entries", [])]}


def child(entry, repeat):
    data = {"text": entry["text"] * repeat}
    if "number" in entry:
        data["number"] = entry["number"]
    metadata = {"name": entry["name"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def trigger(request, reason):
    """Requests a sync of the parent, and returns the result for the status."""
    controller, parent = request["controller"], request["parent"]["metadata"]
    try:
        return {
            "triggered": service.trigger(
                Trigger(
                    controller_kind=controller["kind"],
                    controller_name=controller["metadata"]["name"],
                    parents=[f"{parent['namespace']}/{parent['name']}"],
                    reason=reason,
                )
            )
        }
    except TriggerError as error:
        return {"triggerError": {"code": error.code, "message": str(error)}}


def customize(request):
    name = request["parent"]["metadata"]["name"]
    rule = {"apiVersion": "v1", "resource": "configmaps", "names": [name]}
    return {"relatedResources": [rule]}


def main():
    global service
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--attach", help="address of a gateway")
    parser.add_argument("--worker", default="kit")
    parser.add_argument("--ca-file", default="")
    parser.add_argument("--token-file", default="")
    flags = parser.parse_args()
    hook = Composite(sync=sync, customize=customize)
    if flags.attach:
        gateway = hookloop.Gateway(
            flags.attach, ca_file=flags.ca_file, token_file=flags.token_file
        )
        service = hookloop.attach(hook, gateway=gateway, worker=flags.worker)
    else:
        service = hookloop.Server(hook, listen=flags.listen)
        service.start()
        print(f"listening on {service.address}", flush=True)
    signals = queue.SimpleQueue()  # an Event's lock is not for handlers
    signal.signal(signal.SIGTERM, lambda number, _: signals.put(number))
    signals.get()
    service.stop(1)


if __name__ == "__main__":
    main()
