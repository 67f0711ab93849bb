"""The annotations, as mypy checks them: of the package, of good hooks, and of hooks with mistakes.

mypy is Debian's package of the same name; tools/system.sh installs it.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent
TYPES = ROOT / "tests" / "testdata" / "types"
WEBSITE = ROOT.parent.parent / "examples" / "website" / "python" / "hook.py"


def mypy(*files):
    """Returns the errors that mypy finds in the files: the line numbers and the messages."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.stderr:
        raise AssertionError(f"mypy failed: {result.stderr}")
    matches = (re.match(r"(.*):(\d+): error: (.*)", line) for line in result.stdout.splitlines())
    return [(match[1], int(match[2]), match[3]) for match in matches if match]


class Types(unittest.TestCase):
    maxDiff = None

    def test_the_package_has_no_errors(self):
        self.assertEqual(mypy(), [])

    def test_good_hooks_have_no_errors(self):
        self.assertEqual(mypy(TYPES / "good.py"), [])
        self.assertEqual(mypy(WEBSITE), [])
        defaults = ("--allow-untyped-defs", "--allow-untyped-calls", "--no-check-untyped-defs")
        self.assertEqual(mypy(*defaults, TYPES / "plain.py"), [])

    def test_the_hooks_of_the_readme_have_no_errors(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        blocks = [block.split("```")[0] for block in readme.split("```python\n")[1:]]
        programs = [block for block in blocks if "serve(" in block]
        self.assertGreaterEqual(len(programs), 2)
        for number, program in enumerate(programs):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                hook = pathlib.Path(folder) / "hook.py"
                hook.write_text(program, encoding="utf-8")
                self.assertEqual(mypy(hook), [])

    def test_mistakes_are_found(self):
        lines = (TYPES / "bad.py").read_text(encoding="utf-8").splitlines()
        expected = {
            number: line.partition("# error: ")[2]
            for number, line in enumerate(lines, start=1)
            if "# error: " in line
        }
        found = {number: message for _, number, message in mypy(TYPES / "bad.py")}
        self.assertEqual(found.keys() - expected.keys(), set(), found)
        for number, text in expected.items():
            with self.subTest(line=lines[number - 1].strip()):
                self.assertIn(text, found.get(number, "no error"))
