"""Identifies the build of a hook. When it changes, Hookloop calls the hook again for all parents.
"""

import hashlib
import inspect
import pathlib
from collections.abc import Iterable

from hookloop.service import Route


def build_id(routes: Iterable[Route]) -> str:
    """Hashes the source files of a hook's functions. The result is empty if there are no such
    files.
    """
    files = set()
    for route in routes:
        for function in route.functions:
            try:
                files.add(inspect.getsourcefile(inspect.unwrap(function)) or "")
            except TypeError:  # a callable object has no source file
                continue
    texts = [path.read_bytes() for path in map(pathlib.Path, sorted(files)) if path.is_file()]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16] if texts else ""
