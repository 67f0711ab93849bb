"""Checks the answers of functions and writes them as the contract has them. Every error names the item at fault."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

from google.protobuf import duration_pb2

from hookloop.errors import MAX_WAIT_SECONDS, InvalidResponse
from hookloop.hook.v1 import answer_pb2, customize_pb2, object_pb2
from hookloop.hooks import Child, Dependency

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def check_fields(answer: Any, allowed: Iterable[str], what: str = "the answer") -> Mapping[str, Any]:
    """The answer itself, if it has no other fields than those allowed: a misspelt one would delete what it should keep."""
    if not isinstance(answer, Mapping):
        raise InvalidResponse(f"{what} is {_describe(answer)}, expected a dict")
    for name in answer:
        if name not in allowed:
            raise InvalidResponse(f"{what} has the field {name!r}, expected one of {', '.join(sorted(allowed))}")
    return answer


def encode_status(status: Any) -> Optional[bytes]:
    """The status as JSON; None where the answer has none."""
    if status is None:
        return None
    if not isinstance(status, Mapping):
        raise InvalidResponse(f"status is {_describe(status)}, expected a dict")
    return _json(status, "status")


def encode_desired(field: str, objects: Any) -> list:
    """Desired objects; each has apiVersion, kind and metadata.name."""
    if objects is None:
        return []
    if isinstance(objects, (str, bytes, Mapping)) or not isinstance(objects, Iterable):
        raise InvalidResponse(f"{field} is {_describe(objects)}, expected a list of objects")
    return [_desired(desired, f"{field}[{index}]") for index, desired in enumerate(objects)]


def _desired(desired: Any, item: str) -> Any:
    wrapped = desired if isinstance(desired, Child) else Child(desired, None, ())
    _check_identity(wrapped.object, item)
    if not isinstance(wrapped.ready, (bool, type(None))):
        raise InvalidResponse(f"{item}: ready is {_describe(wrapped.ready)}, expected True, False or None")
    return object_pb2.DesiredObject(
        encoding=object_pb2.ENCODING_JSON,
        body=_json(wrapped.object, item),
        ready=wrapped.ready,
        depends_on=[_dependency(named, f"{item}: depends_on[{index}]") for index, named in enumerate(wrapped.depends_on)],
    )


def _dependency(named: Any, item: str) -> Any:
    if not isinstance(named, Dependency):
        raise InvalidResponse(f"{item} is {_describe(named)}, expected what dependency() makes")
    fields = vars(named)
    for name in ("api_version", "kind", "name"):
        _nonempty_string(fields, name, item)
    return answer_pb2.Dependency(**{name: _string(fields, name, item) for name in fields})


def _check_identity(desired: Any, item: str) -> None:
    if not isinstance(desired, Mapping):
        raise InvalidResponse(f"{item} is {_describe(desired)}, expected a dict with apiVersion, kind and metadata.name")
    metadata = desired.get("metadata")
    fields = {
        "apiVersion": desired.get("apiVersion"),
        "kind": desired.get("kind"),
        "metadata.name": metadata.get("name") if isinstance(metadata, Mapping) else None,
    }
    for name, value in fields.items():
        if not isinstance(value, str) or not value:
            raise InvalidResponse(f"{item}: {name} is {_describe(value)}, expected a string that is not empty")


def encode_resync(seconds: Any) -> Optional[duration_pb2.Duration]:
    """resyncAfterSeconds; None where nothing is asked for."""
    if seconds is None or seconds == 0:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise InvalidResponse(f"resyncAfterSeconds is {seconds!r}, expected a number from 0 to {MAX_WAIT_SECONDS}")
    return duration(seconds)


def duration(seconds: float) -> duration_pb2.Duration:
    """Seconds as the contract has them."""
    whole = math.floor(seconds)
    return duration_pb2.Duration(seconds=whole, nanos=int((seconds - whole) * 1_000_000_000))


def encode_finalized(finalized: Any) -> bool:
    """finalized, which must not be true by accident."""
    if finalized is None or isinstance(finalized, bool):
        return bool(finalized)
    raise InvalidResponse(f"finalized is {_describe(finalized)}, expected True or False")


def encode_patch(field: str, patch: Any) -> tuple[dict[str, str], list[str]]:
    """What a patch of labels or annotations sets, and what it removes: the keys whose value is None."""
    if patch is None:
        return {}, []
    if not isinstance(patch, Mapping):
        raise InvalidResponse(f"{field} is {_describe(patch)}, expected a dict")
    for key, value in patch.items():
        if not isinstance(key, str) or not isinstance(value, (str, type(None))):
            raise InvalidResponse(f"{field}[{key!r}] is {_describe(value)}, expected a string, or None to remove it")
    return {k: v for k, v in patch.items() if v is not None}, [k for k, v in patch.items() if v is None]


RULE_FIELDS = ("apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names")


def encode_rules(field: str, rules: Any) -> list:
    """The rules of a customize answer (relatedResources) or of any other (requirements, which may have names)."""
    allowed = (*RULE_FIELDS, "name") if field == "requirements" else RULE_FIELDS
    return [_rule(check_fields(rule, allowed, item), item) for rule, item in _items(field, rules, "rules")]


def _rule(rule: Mapping[str, Any], item: str) -> Any:
    return customize_pb2.RelatedResourceRule(
        api_version=_string(rule, "apiVersion", item),
        resource=_string(rule, "resource", item),
        label_selector=_selector(rule.get("labelSelector"), f"{item}.labelSelector"),
        namespace_selector=_selector(rule.get("namespaceSelector"), f"{item}.namespaceSelector"),
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
    message = customize_pb2.LabelSelector(match_labels=labels)
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        message.match_expressions.append(_requirement(expression, f"{item}.matchExpressions[{index}]"))
    return message


OPERATORS = {
    "In": customize_pb2.LabelSelectorRequirement.OPERATOR_IN,
    "NotIn": customize_pb2.LabelSelectorRequirement.OPERATOR_NOT_IN,
    "Exists": customize_pb2.LabelSelectorRequirement.OPERATOR_EXISTS,
    "DoesNotExist": customize_pb2.LabelSelectorRequirement.OPERATOR_DOES_NOT_EXIST,
}


def _requirement(expression: Any, item: str) -> Any:
    expression = check_fields(expression, ("key", "operator", "values"), item)
    operator = _string(expression, "operator", item)
    if operator not in OPERATORS:
        raise InvalidResponse(f"{item}.operator is {operator!r}, expected one of {', '.join(OPERATORS)}")
    return customize_pb2.LabelSelectorRequirement(
        key=_string(expression, "key", item), operator=OPERATORS[operator], values=_strings(expression, "values", item)
    )


def encode_conditions(conditions: Any) -> list:
    """Conditions of the parent; each type once."""
    encoded, types = [], set()
    for condition, item in _items("conditions", conditions, "conditions"):
        condition = check_fields(condition, ("type", "status", "reason", "message"), item)
        if (name := _nonempty_string(condition, "type", item)) in types:
            raise InvalidResponse(f"{item}: type is {name!r} a second time, expected each type once")
        types.add(name)
        status = _one_of(condition, "status", ("True", "False", "Unknown"), item)
        encoded.append(answer_pb2.Condition(type=name, status=status, **_reason_and_message(condition, item)))
    return encoded


def encode_events(events: Any) -> list:
    """Events to record on the parent. Without a type an event is Normal."""
    encoded = []
    for event, item in _items("events", events, "events"):
        event = {"type": "Normal"} | dict(check_fields(event, ("type", "reason", "message"), item))
        warning = _one_of(event, "type", ("Normal", "Warning"), item) == "Warning"
        _nonempty_string(event, "reason", item)
        encoded.append(answer_pb2.Event(warning=warning, **_reason_and_message(event, item)))
    return encoded


SEVERITIES = {"Info": answer_pb2.SEVERITY_INFO, "Warning": answer_pb2.SEVERITY_WARNING, "Fatal": answer_pb2.SEVERITY_FATAL}


def encode_results(results: Any) -> list:
    """Remarks about the answer."""
    encoded = []
    for result, item in _items("results", results, "results"):
        result = {"severity": "Info"} | dict(check_fields(result, ("severity", "reason", "message"), item))
        severity = SEVERITIES[_one_of(result, "severity", tuple(SEVERITIES), item)]
        encoded.append(answer_pb2.Result(severity=severity, **_reason_and_message(result, item)))
    return encoded


def _reason_and_message(of: Mapping[str, Any], item: str) -> dict[str, str]:
    return {name: _string(of, name, item) for name in ("reason", "message")}


def _items(field: str, values: Any, what: str) -> Iterator[tuple[Any, str]]:
    """The items of a list with what messages call them."""
    if values is None:
        return
    if not isinstance(values, (list, tuple)):
        raise InvalidResponse(f"{field} is {_describe(values)}, expected a list of {what}")
    for index, value in enumerate(values):
        yield value, f"{field}[{index}]"


def _one_of(of: Mapping[str, Any], name: str, allowed: tuple[str, ...], item: str) -> str:
    value = of.get(name)
    if value not in allowed:
        got = repr(value) if isinstance(value, str) else _describe(value)
        raise InvalidResponse(f"{item}.{name} is {got}, expected one of {', '.join(allowed)}")
    return value


def _nonempty_string(of: Mapping[str, Any], name: str, item: str) -> str:
    value = of.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidResponse(f"{item}.{name} is {_describe(value)}, expected a string that is not empty")
    return value


def _string(of: Mapping[str, Any], name: str, item: str) -> str:
    value = of.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    raise InvalidResponse(f"{item}.{name} is {_describe(value)}, expected a string")


def _strings(of: Mapping[str, Any], name: str, item: str) -> list[str]:
    values = of.get(name)
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
    """A value as messages show it: its type, and the value where that cannot hold a secret."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    return '""' if value == "" else type(value).__name__
