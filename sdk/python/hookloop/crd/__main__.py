"""Writes the CRDs of a module: python3 -m hookloop.crd api -o manifests/crd.yaml"""

import argparse
import importlib
import os
import pathlib
import sys
import traceback
from typing import Any, Optional

from hookloop.crd.definition import definition
from hookloop.crd.markers import resource_of
from hookloop.crd.schema import UnsupportedType


def main(args: Optional[list[str]] = None) -> int:
    """Runs the program, and returns its exit code: 0, 1 after a failure, 2 for a wrong flag."""
    parser = argparse.ArgumentParser(
        prog="python3 -m hookloop.crd",
        description="Write the CRDs of the classes with @custom_resource in a module.",
        epilog="example: python3 -m hookloop.crd api -o manifests/crd.yaml",
    )
    parser.add_argument("module", help="the module in the current folder, such as api, or its file")
    parser.add_argument("-o", "--output", help="the file to write (default: standard output)")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if OUTPUT differs")
    flags = parser.parse_args(args)
    if flags.check and not flags.output:
        parser.error("--check: expected the file to compare with in --output")
    try:
        text = _text(flags.module)
        if flags.check:
            return _check(pathlib.Path(flags.output), text)
        if flags.output:
            pathlib.Path(flags.output).write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
    except (_Failure, UnsupportedType, OSError) as error:
        print(f"hookloop.crd: {error}", file=sys.stderr)
        return 1
    return 0


class _Failure(Exception):
    """A failure that one line explains."""


def _text(name: str) -> str:
    """Returns the CRDs of a module as YAML."""
    try:
        import yaml
    except ImportError as error:
        raise _Failure("writing YAML needs PyYAML: pip install PyYAML (Debian: python3-yaml)") from error
    module = _load(name.removesuffix(".py").replace("/", "."))
    classes = [
        cls
        for cls in vars(module).values()
        if resource_of(cls) and getattr(cls, "__module__", "") == module.__name__
    ]
    if not classes:
        raise _Failure(f"{module.__file__}: has no class with @custom_resource; expected at least one")
    crds = [definition(cls) for cls in classes]

    class Dumper(yaml.SafeDumper):
        """Repeats values instead of references to them."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    head = f"# Generated from {pathlib.Path(module.__file__ or name).name} by hookloop.crd.\n"
    return head + str(yaml.dump_all(crds, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100))


def _load(name: str) -> Any:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise _Failure(f"{name}: {error}") from error
        raise _Failure(f"{name}: no such module in {os.getcwd()}") from error
    except Exception as error:  # of the author's module: the line that failed, not the whole stack
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}:{frame.lineno}"
        if isinstance(error, SyntaxError):
            place = f"{error.filename}:{error.lineno}"
        raise _Failure(f"{place}: {type(error).__name__}: {error}") from error


def _check(path: pathlib.Path, text: str) -> int:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"hookloop.crd: {path} is stale; run the command without --check", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
