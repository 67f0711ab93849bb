"""Related objects that a response requires, without a customize function."""

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
    """Adds a rule to the requirements of the response, and returns the selected objects by name.

    The rule needs a name. The result is None if the request does not have the objects yet: return
    the response as it is. Hookloop then writes nothing, and calls the hook again with the objects.
    Access to a group that could not be read raises RelatedUnknown.
    """
    name = rule.get("name")
    if not name:
        raise ValueError(
            f"requirement on {rule.get('resource')}: name is {name!r}, expected the name of a group"
        )
    response["requirements"] = [*(response.get("requirements") or ()), rule]
    return request["related"].get(name)
