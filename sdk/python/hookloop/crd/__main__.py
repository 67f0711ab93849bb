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
    """Runs the program and returns its exit code: 0, 1 after a failure, 2 after a wrong flag."""
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
    """Is raised for a failure that one line can explain."""


def _text(name: str) -> str:
    """Returns a module's CRDs as YAML."""
    try:
        import yaml
    except ImportError as error:
        raise _Failure("writing YAML needs PyYAML: pip install PyYAML (Debian: python3-yaml)") from error
    module = _load(_module_name(name))
    decorated = [cls for cls in vars(module).values() if resource_of(cls)]
    classes = [cls for cls in decorated if getattr(cls, "__module__", "") == module.__name__]
    if not classes:
        raise _Failure(_without_classes(module, decorated))
    crds = [definition(cls) for cls in classes]

    class Dumper(yaml.SafeDumper):
        """Repeats values instead of writing references to them."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    head = f"# Generated from {pathlib.Path(module.__file__ or name).name} by hookloop.crd.\n"
    return head + str(yaml.dump_all(crds, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100))


def _without_classes(module: Any, imported: list[Any]) -> str:
    """Returns the message for a module that declares no resource."""
    text = f"{module.__file__ or module.__name__}: has no class with @custom_resource"
    if imported:
        others = ", ".join(sorted({cls.__module__ for cls in imported}))
        return f"{text} of its own; expected the module that declares its classes: {others}"
    return f"{text}; expected at least one, such as the dataclass of the parent"


def _module_name(argument: str) -> str:
    """Returns the name of a module, given its name or file."""
    path = pathlib.Path(argument)
    is_file = path.suffix == ".py" or len(path.parts) > 1
    if not is_file:
        name = argument
    elif not path.is_file() and not path.with_suffix(".py").is_file():
        raise _Failure(f"{argument}: no such file in {os.getcwd()}; expected the file with the classes of the parents")
    else:
        try:
            path = path.resolve().relative_to(pathlib.Path.cwd().resolve())
        except ValueError:
            raise _Failure(f"{argument}: is not below {os.getcwd()}; run the command in a folder above it") from None
        name = ".".join(path.with_suffix("").parts)
    for part in name.split("."):
        if not part.isidentifier():
            raise _Failure(f"{argument}: {part!r} is no name of a module; expected letters, digits and _")
    return name


def _load(name: str) -> Any:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            expected = "expected the module with the classes of the parents, such as api for api.py"
            raise _Failure(f"{name}: no such module in {os.getcwd()}; {expected}") from error
        hint = f"install it for {sys.executable}, or run the command in the folder that has it"
        raise _Failure(f"{_place(error)}: {error}; {hint}") from error
    except SystemExit as error:
        hint = 'move what the program does below: if __name__ == "__main__":'
        raise _Failure(f"{_place(error)}: the module ends the process when it is imported; {hint}") from error
    except Exception as error:  # of the author's module: the line that failed, not the whole stack
        text = " ".join(str(error).split())
        raise _Failure(f"{_place(error)}: {type(error).__name__}: {text}") from error


def _place(error: BaseException) -> str:
    """Returns where in the module the failure happened, not where in the import system."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((f for f in reversed(frames) if not f.filename.startswith("<")), frames[-1])
    return f"{frame.filename}:{frame.lineno}"


def _check(path: pathlib.Path, text: str) -> int:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"hookloop.crd: {path} is stale; run the command without --check", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
