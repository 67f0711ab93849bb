"""Helps a hook to require related objects without a customize function."""

from collections.abc import Mapping
from typing import Optional, Union

from hookloop.messages import (
    DecorateRequest,
    DecorateResponse,
    MapFinalizeRequest,
    MapRequest,
    MapResponse,
    RelatedRule,
    SyncRequest,
    SyncResponse,
    TombstoneRequest,
    TombstoneResponse,
)
from hookloop.objects import Object


def require_related(
    request: Union[
        SyncRequest, DecorateRequest, MapRequest, MapFinalizeRequest, TombstoneRequest
    ],
    response: Union[SyncResponse, DecorateResponse, MapResponse, TombstoneResponse],
    rule: RelatedRule,
) -> Optional[Mapping[str, Object]]:
    """Requires related objects, and returns them by name.

    The rule is added to the response's requirements and must have a name. If the result is None,
    Hookloop has not read the objects yet. Return the response then: Hookloop writes nothing, reads
    the objects, and calls the hook again. If Hookloop could not read the group, any access to it
    raises RelatedUnknown.
    """
    name = rule.get("name")
    if not name:
        raise ValueError(
            f"requirement on {rule.get('resource')}: name is {name!r}, expected the name of a group"
        )
    response["requirements"] = [*(response.get("requirements") or ()), rule]
    return request["related"].get(name)
