"""Serves the functions of schedule.py over gRPC."""

from hookloop import Mapper, serve
from schedule import map, tombstone

if __name__ == "__main__":
    serve(Mapper(map=map, tombstone=tombstone))
