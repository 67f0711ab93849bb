"""Names a hook's build, so that engines ask again when it changes."""

import hashlib
import inspect
import pathlib
from collections.abc import Iterable

from hookloop.service import Route


def build_id(routes: Iterable[Route]) -> str:
    """A hash of the source files in which a hook's functions stand; empty where there are none."""
    files = set()
    for route in routes:
        try:
            if route.function is not None:
                files.add(inspect.getsourcefile(inspect.unwrap(route.function)) or "")
        except TypeError:  # an object that can be called has its source elsewhere
            continue
    texts = [path.read_bytes() for path in map(pathlib.Path, sorted(files)) if path.is_file()]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16] if texts else ""
