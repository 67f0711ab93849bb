"""Tests of the hook, which call its functions.

Run with PYTHONPATH=../../sdk/python python3 -m unittest
"""

import unittest
from datetime import datetime, timezone
from unittest.mock import patch

import schedule
from hookloop.testing import map_input, tombstone

NOON = int(datetime(2026, 3, 1, 12, tzinfo=timezone.utc).timestamp())
HOUR, DAY = 3600, 86400
SCHEDULE = {
    "apiVersion": "examples.hookloop.dev/v1",
    "kind": "SnapshotSchedule",
    "metadata": {"name": "nightly", "namespace": "shop"},
    "spec": {"snapshotInterval": "6h", "snapshotTTL": "10d"},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "shop"},
}


def taken(*ages):
    """Returns snapshots of these ages in seconds."""
    found = []
    for age in ages:
        at = datetime.fromtimestamp(NOON - age, timezone.utc)
        found.append(schedule.snapshot("data", NOON - age))
        begin = f"{at:%Y-%m-%dT%H:%M:%SZ}"
        found[-1]["metadata"] |= {"namespace": "shop", "creationTimestamp": begin}
    return found


def names(response):
    return [output["metadata"]["name"] for output in response["outputs"]]


def ask(*ages, at=NOON, **metadata):
    """Calls map for the claim, with snapshots of these ages."""
    claim = CLAIM | {"metadata": CLAIM["metadata"] | metadata}
    with patch("schedule.now", return_value=at):
        objects = [SCHEDULE, claim, *taken(*ages)]
        return map_input(schedule.map, objects, outputs=[schedule.SNAPSHOTS])


def ask_gone(*ages):
    """Calls tombstone for the snapshots of a claim that is gone."""
    with patch("schedule.now", return_value=NOON):
        return tombstone(
            schedule.tombstone,
            [SCHEDULE, *taken(*ages)],
            map_key="PersistentVolumeClaim/shop/data",
            outputs=[schedule.SNAPSHOTS],
        )


class Map(unittest.TestCase):
    def test_a_new_claim_gets_a_snapshot(self):
        response = ask()
        self.assertEqual(names(response), ["data-20260301-120000"])
        self.assertEqual(response["outputs"][0]["spec"], {"persistentVolumeClaimName": "data"})
        self.assertEqual(response["resyncAfterSeconds"], 6 * HOUR)

    def test_a_repeated_call_returns_the_same_name(self):
        self.assertEqual(names(ask(at=NOON + HOUR)), names(ask()))

    def test_none_is_due_before_the_interval_is_over(self):
        response = ask(5 * HOUR)
        self.assertEqual(names(response), ["data-20260301-070000"])
        self.assertEqual(response["resyncAfterSeconds"], HOUR)

    def test_the_next_is_due_after_the_interval(self):
        self.assertEqual(names(ask(6 * HOUR)), ["data-20260301-060000", "data-20260301-120000"])

    def test_an_expired_one_is_not_returned(self):
        self.assertEqual(names(ask(10 * DAY, HOUR)), ["data-20260301-110000"])

    def test_the_next_call_is_at_the_first_expiry(self):
        self.assertEqual(ask(10 * DAY - 60, HOUR)["resyncAfterSeconds"], 60)

    def test_a_claim_that_is_being_deleted_gets_no_more(self):
        response = ask(7 * HOUR, deletionTimestamp="2026-03-01T11:59:00Z")
        self.assertEqual(names(response), ["data-20260301-050000"])
        self.assertEqual(response["resyncAfterSeconds"], 6 * HOUR)


class Tombstone(unittest.TestCase):
    def test_keeps_those_that_have_not_expired(self):
        response = ask_gone(11 * DAY, 10 * DAY, 9 * DAY, HOUR)
        self.assertEqual(names(response), ["data-20260220-120000", "data-20260301-110000"])
        self.assertEqual(response["resyncAfterSeconds"], DAY)

    def test_keeps_none_after_the_last_has_expired(self):
        response = ask_gone(11 * DAY)
        self.assertEqual(response["outputs"], [])
        self.assertFalse(response.get("resyncAfterSeconds"))


if __name__ == "__main__":
    unittest.main()
