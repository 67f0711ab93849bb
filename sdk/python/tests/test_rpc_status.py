"""google.rpc.Status comes from the program's own package if it has one."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parent.parent
USE = """
from hookloop.stream.v1 import stream_pb2
from hookloop.rpc_status import Status, status_pb2
answer = stream_pb2.Answer(error=Status(code=5, message="no"))
print(stream_pb2.Answer.FromString(answer.SerializeToString()).error.code, status_pb2.__name__)
"""


def run(program):
    """Returns the words that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


class RPCStatus(unittest.TestCase):
    def test_the_own_copy(self):
        found = run(USE)
        self.assertIn(found, (["5", "hookloop.rpc.status_pb2"], ["5", "google.rpc.status_pb2"]))

    def test_the_programs_package(self):
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "google" / "rpc"
            package.mkdir(parents=True)
            copy = (ROOT / "hookloop" / "rpc" / "status_pb2.py").read_bytes()
            (package / "status_pb2.py").write_bytes(copy)
            path = f"google.__path__ = [*google.__path__, {str(package.parent)!r}]"
            use = f"import google; {path}\n{USE}"
            found = run(use)
            self.assertEqual(found, ["5", "google.rpc.status_pb2"])


if __name__ == "__main__":
    unittest.main()
