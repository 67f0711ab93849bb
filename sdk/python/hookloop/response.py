"""Checks what functions return, and encodes it as messages.

Every error is an InvalidResponse that names the item.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

from google.protobuf import duration_pb2

from hookloop.errors import MAX_WAIT_SECONDS, InvalidResponse
from hookloop.hook.v1 import desired_pb2, observed_pb2, related_pb2, response_pb2
from hookloop.messages import Child, Dependency

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def check_fields(
    value: Any, allowed: Iterable[str], item: str = "the response"
) -> Mapping[str, Any]:
    """Returns the value if it is a dict with allowed fields only. A misspelt field must not pass,
    because Hookloop could then delete objects.
    """
    if not isinstance(value, Mapping):
        raise InvalidResponse(f"{item} is {_describe(value)}, expected a dict")
    for name in value:
        if name not in allowed:
            expected = ", ".join(sorted(allowed))
            raise InvalidResponse(f"{item} has the field {name!r}, expected one of {expected}")
    return value


def encode_status(status: Any) -> Optional[bytes]:
    """Encodes the status as JSON, or returns None if there is no status."""
    if status is None:
        return None
    if not isinstance(status, Mapping):
        raise InvalidResponse(f"status is {_describe(status)}, expected a dict")
    return _json(status, "status")


def encode_desired(field: str, objects: Any) -> list[Any]:
    """Encodes desired objects. Each must have apiVersion, kind and metadata.name."""
    return [_desired(desired, item) for desired, item in _objects(field, objects)]


def encode_kept(field: str, objects: Any) -> list[Any]:
    """Encodes which observed objects to keep: only kind, namespace and name."""
    return [_kept(kept, item) for kept, item in _objects(field, objects)]


def _objects(field: str, objects: Any) -> Iterator[tuple[Any, str]]:
    """Yields the objects in a list, each with its name for messages."""
    if objects is None:
        return
    if isinstance(objects, (str, bytes, Mapping)) or not isinstance(objects, Iterable):
        raise InvalidResponse(f"{field} is {_describe(objects)}, expected a list of objects")
    for index, found in enumerate(objects):
        yield found, f"{field}[{index}]"


def _kept(kept: Any, item: str) -> Any:
    _check_identity(kept, item)
    metadata = {
        name: kept["metadata"][name]
        for name in ("namespace", "name")
        if kept["metadata"].get(name)
    }
    identity = {"apiVersion": kept["apiVersion"], "kind": kept["kind"], "metadata": metadata}
    return _desired(identity, item)


def _desired(desired: Any, item: str) -> Any:
    child = desired if isinstance(desired, Child) else Child(desired)
    _check_identity(child.object, item)
    if not isinstance(child.ready, (bool, type(None))):
        got = _describe(child.ready)
        raise InvalidResponse(f"{item}: ready is {got}, expected True, False or None")
    return desired_pb2.DesiredObject(
        encoding=observed_pb2.ENCODING_JSON,
        body=_json(child.object, item),
        ready=child.ready,
        depends_on=[
            _dependency(dependency, f"{item}: depends_on[{index}]")
            for index, dependency in enumerate(child.depends_on)
        ],
    )


def _dependency(dependency: Any, item: str) -> Any:
    if not isinstance(dependency, Dependency):
        raise InvalidResponse(f"{item} is {_describe(dependency)}, expected a Dependency")
    fields = vars(dependency)
    for name in ("api_version", "kind", "name"):
        _nonempty_string(fields, name, item)
    return desired_pb2.Dependency(**{name: _string(fields, name, item) for name in fields})


def _check_identity(desired: Any, item: str) -> None:
    if not isinstance(desired, Mapping):
        expected = "a dict with apiVersion, kind and metadata.name"
        raise InvalidResponse(f"{item} is {_describe(desired)}, expected {expected}")
    metadata = desired.get("metadata")
    fields = {
        "apiVersion": desired.get("apiVersion"),
        "kind": desired.get("kind"),
        "metadata.name": metadata.get("name") if isinstance(metadata, Mapping) else None,
    }
    for name, value in fields.items():
        if not isinstance(value, str) or not value:
            expected = "expected a string that is not empty"
            raise InvalidResponse(f"{item}: {name} is {_describe(value)}, {expected}")


def encode_resync(seconds: Any) -> Optional[duration_pb2.Duration]:
    """Encodes resyncAfterSeconds, or returns None if no resync is requested."""
    if seconds is None or seconds == 0:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= MAX_WAIT_SECONDS:
        expected = f"a number from 0 to {MAX_WAIT_SECONDS}"
        raise InvalidResponse(f"resyncAfterSeconds is {seconds!r}, expected {expected}")
    return duration(seconds)


def duration(seconds: float) -> duration_pb2.Duration:
    """Encodes seconds as a Duration."""
    whole = math.floor(seconds)
    return duration_pb2.Duration(seconds=whole, nanos=int((seconds - whole) * 1_000_000_000))


def encode_finalized(finalized: Any) -> bool:
    """Checks finalized. Only a bool is allowed, so that no other value finalizes a parent by
    accident.
    """
    if finalized is None or isinstance(finalized, bool):
        return bool(finalized)
    raise InvalidResponse(f"finalized is {_describe(finalized)}, expected True or False")


def encode_patch(field: str, patch: Any) -> tuple[dict[str, str], list[str]]:
    """Splits a patch of labels or annotations into values to set and keys to remove. A key is
    removed if its value is None.
    """
    if patch is None:
        return {}, []
    if not isinstance(patch, Mapping):
        raise InvalidResponse(f"{field} is {_describe(patch)}, expected a dict")
    for key, value in patch.items():
        if not isinstance(key, str) or not isinstance(value, (str, type(None))):
            got = _describe(value)
            raise InvalidResponse(
                f"{field}[{key!r}] is {got}, expected a string, or None to remove it"
            )
    removed = [key for key, value in patch.items() if value is None]
    return {key: value for key, value in patch.items() if value is not None}, removed


RULE_FIELDS = (
    "apiVersion",
    "resource",
    "labelSelector",
    "namespaceSelector",
    "namespace",
    "names",
)


def encode_rules(field: str, rules: Any) -> list[Any]:
    """Encodes relatedResources or requirements. Only rules in requirements may have a name."""
    allowed = (*RULE_FIELDS, "name") if field == "requirements" else RULE_FIELDS
    items = _items(field, rules, "rules")
    return [_rule(check_fields(rule, allowed, item), item) for rule, item in items]


def _rule(rule: Mapping[str, Any], item: str) -> Any:
    namespaces = f"{item}.namespaceSelector"
    return related_pb2.RelatedResourceRule(
        api_version=_string(rule, "apiVersion", item),
        resource=_string(rule, "resource", item),
        label_selector=_selector(rule.get("labelSelector"), f"{item}.labelSelector"),
        namespace_selector=_selector(rule.get("namespaceSelector"), namespaces),
        namespace=_string(rule, "namespace", item),
        names=_strings(rule, "names", item),
        name=_string(rule, "name", item),
    )


def _selector(selector: Any, item: str) -> Any:
    if selector is None:
        return None
    selector = check_fields(selector, ("matchLabels", "matchExpressions"), item)
    labels, removed = encode_patch(f"{item}.matchLabels", selector.get("matchLabels"))
    if removed:
        raise InvalidResponse(f"{item}.matchLabels[{removed[0]!r}] is None, expected a string")
    message = related_pb2.LabelSelector(match_labels=labels)
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        encoded = _selector_requirement(expression, f"{item}.matchExpressions[{index}]")
        message.match_expressions.append(encoded)
    return message


OPERATORS = {
    "In": related_pb2.LabelSelectorRequirement.OPERATOR_IN,
    "NotIn": related_pb2.LabelSelectorRequirement.OPERATOR_NOT_IN,
    "Exists": related_pb2.LabelSelectorRequirement.OPERATOR_EXISTS,
    "DoesNotExist": related_pb2.LabelSelectorRequirement.OPERATOR_DOES_NOT_EXIST,
}


def _selector_requirement(expression: Any, item: str) -> Any:
    expression = check_fields(expression, ("key", "operator", "values"), item)
    operator = _one_of(expression, "operator", tuple(OPERATORS), item)
    return related_pb2.LabelSelectorRequirement(
        key=_string(expression, "key", item),
        operator=OPERATORS[operator],
        values=_strings(expression, "values", item),
    )


CONDITION_STATUSES = {
    "True": response_pb2.CONDITION_STATUS_TRUE,
    "False": response_pb2.CONDITION_STATUS_FALSE,
    "Unknown": response_pb2.CONDITION_STATUS_UNKNOWN,
}


def encode_conditions(conditions: Any) -> list[Any]:
    """Encodes conditions. Each type may occur once."""
    encoded, types = [], set()
    for condition, item in _items("conditions", conditions, "conditions"):
        condition = check_fields(condition, ("type", "status", "reason", "message"), item)
        if (name := _nonempty_string(condition, "type", item)) in types:
            raise InvalidResponse(f"{item}: type {name!r} occurs twice, expected each type once")
        types.add(name)
        status = CONDITION_STATUSES[_one_of(condition, "status", tuple(CONDITION_STATUSES), item)]
        reason = _reason_and_message(condition, item)
        encoded.append(response_pb2.Condition(type=name, status=status, **reason))
    return encoded


EVENT_TYPES = {
    "Normal": response_pb2.EVENT_TYPE_NORMAL,
    "Warning": response_pb2.EVENT_TYPE_WARNING,
}


def encode_events(events: Any) -> list[Any]:
    """Encodes events. The type defaults to Normal."""
    encoded = []
    for event, item in _items("events", events, "events"):
        event = {"type": "Normal"} | dict(check_fields(event, ("type", "reason", "message"), item))
        event_type = EVENT_TYPES[_one_of(event, "type", tuple(EVENT_TYPES), item)]
        _nonempty_string(event, "reason", item)
        encoded.append(response_pb2.Event(type=event_type, **_reason_and_message(event, item)))
    return encoded


SEVERITIES = {
    "Info": response_pb2.SEVERITY_INFO,
    "Warning": response_pb2.SEVERITY_WARNING,
    "Fatal": response_pb2.SEVERITY_FATAL,
}


def encode_results(results: Any) -> list[Any]:
    """Encodes results. The severity defaults to Info."""
    encoded = []
    for result, item in _items("results", results, "results"):
        fields = check_fields(result, ("severity", "reason", "message"), item)
        result = {"severity": "Info"} | dict(fields)
        severity = SEVERITIES[_one_of(result, "severity", tuple(SEVERITIES), item)]
        encoded.append(response_pb2.Result(severity=severity, **_reason_and_message(result, item)))
    return encoded


def _reason_and_message(fields: Mapping[str, Any], item: str) -> dict[str, str]:
    return {name: _string(fields, name, item) for name in ("reason", "message")}


def _items(field: str, values: Any, plural: str) -> Iterator[tuple[Any, str]]:
    """Yields the items in a list, each with its name for messages."""
    if values is None:
        return
    if not isinstance(values, (list, tuple)):
        raise InvalidResponse(f"{field} is {_describe(values)}, expected a list of {plural}")
    for index, value in enumerate(values):
        yield value, f"{field}[{index}]"


def _one_of(fields: Mapping[str, Any], name: str, allowed: tuple[str, ...], item: str) -> str:
    value = fields.get(name)
    for word in allowed:
        if value == word:  # an enumeration's member is equal to its value
            return word
    got = repr(value) if isinstance(value, str) else _describe(value)
    raise InvalidResponse(f"{item}.{name} is {got}, expected one of {', '.join(allowed)}")


def _nonempty_string(fields: Mapping[str, Any], name: str, item: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        expected = "expected a string that is not empty"
        raise InvalidResponse(f"{item}.{name} is {_describe(value)}, {expected}")
    return value


def _string(fields: Mapping[str, Any], name: str, item: str) -> str:
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    raise InvalidResponse(f"{item}.{name} is {_describe(value)}, expected a string")


def _strings(fields: Mapping[str, Any], name: str, item: str) -> list[str]:
    values = fields.get(name)
    if values is None:
        return []
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise InvalidResponse(f"{item}.{name} is {_describe(values)}, expected a list of strings")
    return list(values)


def _json(value: Any, item: str) -> bytes:
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResponse(f"{item} is no JSON: {error}") from error


def _describe(value: Any) -> str:
    """Describes a value for a message: by its type, and by the value if it cannot contain a secret.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    return '""' if value == "" else type(value).__name__
