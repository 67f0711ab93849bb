"""For every PersistentVolumeClaim that a SnapshotSchedule selects: a VolumeSnapshot at each
interval, for as long as its TTL, even if the claim is gone.

Only the standard library: stream.py serves these functions over gRPC, ../serve.py as webhooks.
"""

import time
from datetime import datetime, timezone

SNAPSHOTS = "VolumeSnapshot.volumesnapshot.external-storage.k8s.io/v1"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def map(request):
    """Returns the snapshots of a claim: those that have not expired, and a new one if it is due."""
    spec, claim = request["parent"]["spec"], request["input"]["metadata"]
    observed = list(request["outputs"][SNAPSHOTS].values())
    interval, clock = seconds(spec["snapshotInterval"]), now()
    due = max([created(s) for s in observed], default=0) + interval
    outputs, wait = unexpired(observed, spec, clock)
    if clock >= due:
        due = clock + interval
        if "deletionTimestamp" not in claim:
            outputs.append(snapshot(claim["name"], clock - clock % interval))
    return {"outputs": outputs, "resyncAfterSeconds": min([due - clock, *wait])}


def tombstone(request):
    """Returns the snapshots to keep of a claim that is gone."""
    spec = request["parent"]["spec"]
    outputs, wait = unexpired(request["outputs"][SNAPSHOTS].values(), spec, now())
    return {"outputs": outputs, "resyncAfterSeconds": min(wait, default=0)}


def unexpired(snapshots, spec, clock):
    """Returns the snapshots that are younger than the TTL, and how many seconds each has left."""
    remaining = [(s, created(s) + seconds(spec["snapshotTTL"]) - clock) for s in snapshots]
    return [s for s, left in remaining if left > 0], [left for _, left in remaining if left > 0]


def snapshot(claim, begin):
    """Returns the snapshot of a claim for the interval that begins then. A call that is repeated
    within an interval returns the same name."""
    at = datetime.fromtimestamp(begin, timezone.utc)
    return {
        "apiVersion": "volumesnapshot.external-storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": f"{claim}-{at:%Y%m%d-%H%M%S}"},
        "spec": {"persistentVolumeClaimName": claim},
    }


def created(snapshot):
    at = snapshot["metadata"]["creationTimestamp"]
    return int(datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp())


def seconds(duration):
    """Returns the seconds of "30s", "5m", "6h" or "10d"."""
    return int(duration[:-1]) * UNITS[duration[-1]]


def now():
    return int(time.time())
