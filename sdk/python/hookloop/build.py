"""The version of a hook. Engines call the hook for all parents again when it changes."""

import hashlib
import inspect
import pathlib
from collections.abc import Iterable

from hookloop.service import Route


def build_id(routes: Iterable[Route]) -> str:
    """Returns a hash of the source files of a hook's functions; it is empty without such files."""
    files = set()
    for route in routes:
        for function in route.functions:
            try:
                files.add(inspect.getsourcefile(inspect.unwrap(function)) or "")
            except TypeError:  # a callable object has no source file
                continue
    texts = [path.read_bytes() for path in map(pathlib.Path, sorted(files)) if path.is_file()]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16] if texts else ""
