"""A hook that returns spec.answer of its parent, or spec.finally while the parent is being deleted.

It rejects a parent with spec.refuse. In a response without a status it reports the number of
observed ConfigMaps.
"""

from hookloop import Composite, Reject, serve


def sync(request):
    spec = request["parent"].get("spec", {})
    if spec.get("refuse"):
        raise Reject("TooLate", spec["refuse"])
    answer = spec.get("finally" if request["finalizing"] else "answer", {})
    return {"status": {"seen": len(request["children"]["ConfigMap.v1"])}} | answer


serve(Composite(sync=sync, finalize=sync))
