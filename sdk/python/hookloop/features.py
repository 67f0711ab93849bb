"""Names the features of a response that an older engine may not know
(hookloop.hook.v1.RequestMeta).

A hook does not send a response with a feature that the engine does not honour, because that engine
would carry out only a part of the response.
"""

from collections.abc import Callable, Iterable
from typing import Any

from hookloop.errors import Reject

# Each feature's name, and a function that tells whether desired objects and a response use it.
_USES: dict[str, Callable[[list[Any], Any, Any], bool]] = {
    "conditions": lambda desired, details, rules: bool(details.conditions),
    "depends_on": lambda desired, details, rules: any(each.depends_on for each in desired),
    "events": lambda desired, details, rules: bool(details.events),
    "named_rules": lambda desired, details, rules: any(rule.name for rule in rules),
    "ready": lambda desired, details, rules: any(each.HasField("ready") for each in desired),
    "requirements": lambda desired, details, rules: bool(details.requirements),
    "results": lambda desired, details, rules: bool(details.results),
}


def used(message: Any, desired: Iterable[Any]) -> list[str]:
    """Returns the features that a response and its desired objects use, sorted."""
    if not hasattr(message, "details"):  # a response to Customize
        return ["named_rules"] if any(rule.name for rule in message.related_resources) else []
    details = message.details
    objects = list(desired)
    return [name for name, uses in _USES.items() if uses(objects, details, details.requirements)]


def check(features: Iterable[str], request: Any) -> None:
    """Raises Reject if a response uses a feature that the engine does not honour. An engine that
    sends no meta rejects such a response itself.
    """
    if not request.HasField("meta"):
        return
    honoured = list(request.meta.features)
    for feature in features:
        if feature not in honoured:
            raise Reject(
                "FeatureNotHonoured",
                f'the response uses the feature "{feature}", which the engine '
                f"{request.meta.engine_version} does not honour; "
                f"it honours {', '.join(honoured) or 'none'}",
            )
