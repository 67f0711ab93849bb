"""A hook on the SDK that answers what its parent says: spec.answer, or spec.finally while the parent is being deleted. It refuses a parent with
spec.refuse, and counts in an answer without a status the ConfigMaps that it is shown."""

from hookloop import Composite, Reject, serve


def sync(request):
    spec = request["parent"].get("spec", {})
    if spec.get("refuse"):
        raise Reject("TooLate", spec["refuse"])
    answer = spec.get("finally" if request["finalizing"] else "answer", {})
    return {"status": {"seen": len(request["children"]["ConfigMap.v1"])}} | answer


serve(Composite(sync=sync, finalize=sync))
