"""CRDs of dataclasses, and values of them.

testdata/crd/crd.yaml is the expected output for testdata/crd/api.py; UPDATE=1 rewrites it.
"""

import contextlib
import dataclasses
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hookloop.crd import WrongValue, custom_resource, decode, encode
from hookloop.crd.__main__ import main
from tests.testdata.crd import api

TESTDATA = pathlib.Path(__file__).parent / "testdata" / "crd"
ROOT = pathlib.Path(__file__).parent.parent
HEAD = """
import datetime, enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, Union
from hookloop.crd import *
"""
RESOURCE = """
@custom_resource(group="example.com", version="v1")
@dataclass
class Shop:
    metadata: dict[str, Any]
    spec: Spec
"""
# A field of the spec, and the error.
BAD = (
    ("when: datetime.datetime", "Spec.when: datetime has no schema; expected str, int, float"),
    ("raw: bytes", "Spec.raw: bytes has no schema"),
    ("some: list", "Spec.some: list has no schema"),
    ("pair: tuple[int, int]", "Spec.pair: tuple[int, int] has no schema"),
    ("by: dict[int, str]", "Spec.by: the keys of a dict are strings; expected dict[str, …]"),
    ("deep: dict[str, list[bytes]]", "Spec.deep: bytes has no schema"),
    ('mixed: Literal["a", 1]', "Spec.mixed: got the values ['a', 1]; expected only strings, or only"),
    ("either: Union[int, list[str]]", "Spec.either: typing.Union[int, list[str]] has no schema"),
    ("text: Annotated[str, Minimum(1)]", "Spec.text: Minimum is a rule of integer or number; the field is string"),
    ('style: Literal["A", "B"] = "C"', "Spec.style: the default 'C' is not one of ['A', 'B']"),
    ('copies: Annotated[int, Minimum(0)] = "1"', "Spec.copies: the default '1' is not of type integer"),
    ("copies: int = 1.5", "Spec.copies: the default 1.5 is not of type integer"),
    ("loud: bool = 1", "Spec.loud: the default 1 is not of type boolean"),
    ("copies: Annotated[int, Maximum(3)] = 4", "Spec.copies: the default 4 is not within its minimum and"),
    ('again: "list[Spec]"', "Spec: Shop → Spec → Spec: a CRD cannot have a type that contains itself"),
    ('other: "Missing"', "Spec: name 'Missing' is not defined; expected a type of its module"),
)


def program(*args):
    """Runs the program in this process. It returns the exit code and the output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(arg) for arg in args])
    return code, out.getvalue(), err.getvalue()


class Definitions(unittest.TestCase):
    maxDiff = None

    def test_all_types(self):
        code, out, err = program("tests.testdata.crd.api")
        self.assertEqual((code, err), (0, ""))
        golden = TESTDATA / "crd.yaml"
        if os.environ.get("UPDATE"):
            golden.write_text(out, encoding="utf-8")
        self.assertEqual(out, golden.read_text(encoding="utf-8"))

    def test_bad_types_are_named(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(contextlib.chdir(folder))
        for number, (field, expected) in enumerate(BAD):
            with self.subTest(field):
                name = f"bad{number}"
                text = f"{HEAD}\n@dataclass\nclass Spec:\n    {field}\n{RESOURCE}"
                (folder / f"{name}.py").write_text(text, encoding="utf-8")
                code, out, err = program(name)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(expected, err)
                line = text.splitlines().index(f"    {field}") + 1
                where = line if expected.startswith("Spec.") else line - 2
                self.assertIn(f"{name}.py:{where}: ", err)
                self.assertNotIn("Traceback", err)

    def test_a_wrong_resource_is_an_error(self):
        for arguments, expected in (
            ({"group": "example", "version": "v1"}, "group: got 'example', expected a DNS name"),
            ({"group": "example.com", "version": "1"}, "version: got '1', expected one such as"),
            ({"group": "a.b", "version": "v1", "scope": "All"}, "scope: got 'All', expected 'Namespaced'"),
        ):
            with self.assertRaisesRegex(ValueError, expected):
                custom_resource(**arguments)
        with self.assertRaisesRegex(ValueError, "Bare is not a dataclass"):
            custom_resource(group="a.b", version="v1")(type("Bare", (), {}))


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(contextlib.chdir(self.folder))

    def test_writes_and_checks_a_file(self):
        text = f"{HEAD}\n@dataclass\nclass Spec:\n    n: int\n{RESOURCE}"
        (self.folder / "shops.py").write_text(text)
        command = (sys.executable, "-m", "hookloop.crd", "shops.py", "-o", "crd.yaml")
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(command, env=env, check=True, capture_output=True)
        self.assertIn("name: shops.example.com", (self.folder / "crd.yaml").read_text())
        self.assertEqual(program("shops", "-o", "crd.yaml", "--check"), (0, "", ""))
        (self.folder / "crd.yaml").write_text("")
        code, _, err = program("shops", "-o", "crd.yaml", "--check")
        self.assertEqual(code, 1)
        self.assertIn("crd.yaml is stale", err)

    def test_faults_of_the_module_are_one_line(self):
        for number, (text, expected) in enumerate((
            ("x = 1", "fault0.py: has no class with @custom_resource; expected at least one"),
            ("\nimport nothing_there", "fault1.py:2: No module named 'nothing_there'; install it for "),
            ("class Shop", "fault2.py:1: SyntaxError"),
            ("x = 1 / 0", "fault3.py:1: ZeroDivisionError"),
            ("import sys\nsys.exit(3)", "fault4.py:2: the module ends the process when it is imported; move"),
            ("raise ValueError('a\\nb')", "fault5.py:1: ValueError: a b"),
        )):
            with self.subTest(text):
                (self.folder / f"fault{number}.py").write_text(text)
                code, _, err = program(f"fault{number}.py")
                self.assertEqual(code, 1)
                self.assertIn(expected, err)
                self.assertEqual(len(err.splitlines()), 1, err)

    def test_a_module_that_cannot_be_found_is_named(self):
        (self.folder / "flat.py").write_text("x = 1")
        other = self.enterContext(tempfile.NamedTemporaryFile(suffix=".py"))
        for argument, expected in (
            ("other", "other: no such module in "),
            ("other.api", "other.api: no such module in "),
            ("flat.api", "flat.api: no such module in "),
            ("other.py", "other.py: no such file in "),
            ("src/other", "src/other: no such file in "),
            ("my-api", "my-api: 'my-api' is no name of a module"),
            (".flat", ".flat: '' is no name of a module"),
            (other.name, f"{other.name}: is not below "),
            ("", ": '' is no name of a module"),
        ):
            with self.subTest(argument):
                code, _, err = program(argument)
                self.assertEqual(code, 1)
                self.assertIn(f"hookloop.crd: {expected}", err)
                self.assertEqual(len(err.splitlines()), 1, err)

    def test_a_file_by_its_path(self):
        text = f"{HEAD}\n@dataclass\nclass Spec:\n    n: int\n{RESOURCE}"
        (self.folder / "src").mkdir()
        (self.folder / "src" / "shops.py").write_text(text)
        (self.folder / "hook.py").write_text("from src.shops import Shop")
        for argument in ("src/shops.py", "./src/shops.py", self.folder / "src" / "shops.py", "src/shops", "src.shops"):
            code, out, err = program(argument)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("name: shops.example.com", out)
        code, _, err = program("hook.py")
        self.assertEqual(code, 1)
        self.assertIn("hook.py: has no class with @custom_resource of its own; expected the module that", err)
        self.assertIn("src.shops", err)


class Values(unittest.TestCase):
    SHOP = {
        "apiVersion": "example.com/v1",
        "kind": "Shop",
        "metadata": {"name": "sample"},
        "spec": {"message": "Hi", "doors": [{"name": "a"}], "openOnSunday": True, "tier": "Gold", "new": 1},
    }

    def test_decodes_with_defaults(self):
        shop = decode(api.Shop, self.SHOP)
        self.assertEqual(shop.metadata["name"], "sample")
        self.assertEqual(shop.spec.doors, [api.Door("a", 0.9)])
        self.assertIs(shop.spec.tier, api.Tier.GOLD)
        self.assertEqual((shop.spec.open_on_sunday, shop.spec.copies), (True, 1))
        self.assertIsNone(shop.status)

    def test_encodes_what_it_decodes(self):
        spec = decode(api.Shop, self.SHOP).spec
        encoded = encode(spec)
        self.assertEqual((encoded["openOnSunday"], encoded["tier"]), (True, "Gold"))
        self.assertNotIn("apiURL", encoded)
        again = encode(dataclasses.replace(spec, api_url="http://a"))
        self.assertEqual(again["apiURL"], "http://a")
        self.assertEqual(decode(api.ShopSpec, encoded), spec)

    def test_wrong_values_are_named(self):
        for change, expected in (
            ({"copies": "two"}, "Shop.spec.copies: got 'two', expected int"),
            ({"copies": True}, "Shop.spec.copies: got True, expected int"),
            ({"style": "Odd"}, "Shop.spec.style: got 'Odd', expected one of"),
            ({"tier": "Tin"}, "Shop.spec.tier: got 'Tin', expected one of"),
            ({"doors": [{}]}, "Shop.spec.doors[0].name: missing"),
            ({"rooms": {"a": ["b"]}}, "Shop.spec.rooms.a[0]: got 'b', expected int"),
        ):
            with self.subTest(change), self.assertRaises(WrongValue) as raised:
                decode(api.Shop, self.SHOP | {"spec": self.SHOP["spec"] | change})
            self.assertIn(expected, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
