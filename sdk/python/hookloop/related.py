"""Related objects that an answer requires, without a customize function."""

from collections.abc import Mapping
from typing import Any, Optional


def require_related(request: Mapping[str, Any], answer: dict[str, Any], rule: Mapping[str, Any]) -> Optional[Mapping[str, Any]]:
    """Adds a rule to the answer's requirements and returns the objects that it selects, by name.

    rule has apiVersion, resource and a name, and perhaps names, namespace, labelSelector and namespaceSelector. The result is None if the
    objects have not been shown yet: return the answer as it is; Hookloop writes nothing of it and asks again with the objects. Looking into
    a group whose objects are not known raises RelatedUnknown.
    """
    if not rule.get("name"):
        raise ValueError(f"requirement on {rule.get('resource')}: name is {rule.get('name')!r}, expected the name of a group")
    answer.setdefault("requirements", []).append(dict(rule))
    return request["related"].get(rule["name"])
