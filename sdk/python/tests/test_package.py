"""The package as users install it: a wheel that is built from the source distribution."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent
USE = """
import pathlib, hookloop, hookloop.testing
from hookloop.composite.v1 import composite_pb2
from hookloop.stream.v1 import gateway_pb2
assert (pathlib.Path(hookloop.__file__).parent / "py.typed").exists()
print(pathlib.Path(hookloop.__file__).parent.parent)
web = {"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "w"}, "spec": {"n": 7}}
response = hookloop.testing.call(lambda request: {"status": request["parent"]["spec"]}, [web])
print(response["status"]["n"])
"""


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, **options
    ).stdout


class Package(unittest.TestCase):
    def test_a_wheel_from_the_source_distribution(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source = folder / "source"
            shutil.copytree(
                ROOT,
                source,
                ignore=shutil.ignore_patterns(
                    "__pycache__", "build", "dist", "*.egg-info", "tests"
                ),
            )
            run(
                sys.executable,
                "-c",
                "from setuptools import build_meta; build_meta.build_sdist('..')",
                cwd=source,
            )
            (sdist,) = folder.glob("hookloop-*.tar.gz")
            pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir")
            run(
                *pip,
                "wheel",
                "--no-index",
                "--no-build-isolation",
                "--no-deps",
                "--wheel-dir",
                folder,
                sdist,
            )
            (wheel,) = folder.glob("hookloop-*.whl")
            venv = folder / "venv"
            run(sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv)
            python = venv / "bin" / "python"
            run(python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", wheel)
            location, result = run(python, "-I", "-c", USE, cwd=folder).splitlines()
            self.assertTrue(pathlib.Path(location).is_relative_to(venv.resolve()), location)
            self.assertEqual(result, "7")
