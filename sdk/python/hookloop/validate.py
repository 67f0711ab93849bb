"""Checks responses by the engine's rules, as far as these depend on nothing but the parent and the
declared kinds.

Module testing uses it. The limits, patterns and reserved names are in answer_rules.json, which
tools/gen.sh copies; the cases of sdk/testdata/answers.json test the engine and all SDKs. Every
error is an InvalidResponse that names the item.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any, Optional

from hookloop.errors import InvalidResponse
from hookloop.hook.v1 import related_pb2, response_pb2

# Marks a declared kind as cluster-scoped: "Namespace.v1:Cluster".
CLUSTER = ":Cluster"
MAX_NAMED = 10
# The controller's name in requests that module testing makes.
CONTROLLER_NAME = "test"

_RULES = json.loads(files("hookloop").joinpath("answer_rules.json").read_text("utf-8"))
_FORMATS, _LIMITS, _RESERVED = _RULES["formats"], _RULES["limits"], _RULES["reserved"]
# The engine marks objects with these annotations: they name the controller of an attachment or
# output, and an output's input. An output also carries a label of this name with a hash of the
# input's key.
_MARKS = _RULES["marks"]
_KIND = re.compile(r"[^.:]+\.[^:]+")


def declared_kinds(keys: Iterable[str]) -> dict[str, bool]:
    """Returns the declared kinds. The value is True if the kind is cluster-scoped."""
    declared = {}
    for key in keys:
        kind = key.removesuffix(CLUSTER)
        if not _KIND.fullmatch(kind):
            expected = f"one such as Pod.v1, Deployment.apps/v1 or Namespace.v1{CLUSTER}"
            raise ValueError(f"kind {_quoted(key)}: expected {expected}")
        declared[kind] = kind != key
    return declared


@dataclass(frozen=True)
class Ref:
    """Identifies a desired object as the engine does."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {_quoted(path)}"


@dataclass(frozen=True)
class Scope:
    """What the rules need to know about a response. field is children, attachments or outputs.
    namespace is the parent's, and map_key comes from a map hook's request. kept holds the outputs
    that a tombstone may keep; it is None for other responses.
    """

    field: str
    namespace: str
    declared: Mapping[str, bool]
    map_key: str = ""
    kept: Optional[Collection["Ref"]] = None


def validate(scope: Scope, message: Any, desired: list[Any]) -> None:
    """Raises InvalidResponse if the engine would reject a response. If a result is fatal, the
    engine reads only the requirements.
    """
    _requirements(message.details.requirements)
    results = message.details.results
    if any(result.severity == response_pb2.SEVERITY_FATAL for result in results):
        return
    refs = _children(scope, [json.loads(each.body) for each in desired])
    _kept(scope, refs)
    _dependencies(scope, refs, desired)
    if scope.field == "attachments":
        _patches(message)
    _remarks(message.details)


def _children(scope: Scope, objects: list[Any]) -> list[Ref]:
    refs: list[Ref] = []
    first: dict[Ref, int] = {}
    for index, found in enumerate(objects):
        item = f"{scope.field}[{index}]"
        metadata = found["metadata"]
        _metadata(metadata, item)
        kind = f"{found['kind']}.{found['apiVersion']}"
        ref = Ref(kind, metadata.get("namespace") or "", metadata["name"])
        item = f"{item} {ref}"
        if ref.kind not in scope.declared:
            expected = f"expected one of [{', '.join(sorted(scope.declared))}]"
            raise InvalidResponse(f"{item}: kind is not declared by the controller; {expected}")
        ref = _resolve_namespace(scope, ref, item)
        _marks(scope, metadata, item)
        if ref in first:
            raise InvalidResponse(
                f"{scope.field}[{index}] {ref}: is desired twice, first as "
                f"{scope.field}[{first[ref]}]; expected each object once"
            )
        first[ref] = index
        refs.append(ref)
    return refs


def _marks(scope: Scope, metadata: Mapping[str, Any], item: str) -> None:
    """Checks that an object does not look as if another controller or input owned it."""
    annotations = metadata.get("annotations") or {}
    for mark in _MARKS.values():
        value = annotations.get(mark["key"])
        if value is not None and scope.field != mark["list"]:
            text = f"metadata.annotations[{_quoted(mark['key'])}] is {_quoted(value)}"
            raise InvalidResponse(
                f"{item}: {text}; expected none, "
                f"because it names the {mark['names']} that an object belongs to"
            )
    if scope.field != "outputs":
        return
    hashed = sha256(scope.map_key.encode()).hexdigest()[:32]
    for field, key, expected in (
        ("annotations", _MARKS["mapController"]["key"], CONTROLLER_NAME),
        ("annotations", _MARKS["mapKey"]["key"], scope.map_key),
        ("labels", _MARKS["mapKey"]["key"], hashed),
    ):
        value = (metadata.get(field) or {}).get(key)
        if value is not None and value != expected:
            text = f"metadata.{field}[{_quoted(key)}] is {_quoted(value)}"
            raise InvalidResponse(f"{item}: {text}; expected {_quoted(expected)}, or none")


def _kept(scope: Scope, refs: list[Ref]) -> None:
    """Checks that outputs to keep are in the request."""
    if scope.kept is None:
        return
    for index, ref in enumerate(refs):
        if ref in scope.kept:
            continue
        names = sorted(map(str, scope.kept))
        if len(names) > MAX_NAMED:
            names = [*names[:MAX_NAMED], f"and {len(names) - MAX_NAMED} more"]
        raise InvalidResponse(
            f"{scope.field}[{index}] {ref}: does not exist; expected some of the outputs of the "
            f"request: [{', '.join(names)}]"
        )


def _metadata(metadata: Mapping[str, Any], item: str) -> None:
    """Checks the types of fields that every object has."""
    if not isinstance(metadata.get("namespace"), (str, type(None))):
        raise InvalidResponse(f"{item}: metadata.namespace: expected a string")
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if not isinstance(values, (dict, type(None))):
            expected = "expected an object with strings as values"
            raise InvalidResponse(f"{item}: metadata.{field}: {expected}")
        for key, value in (values or {}).items():
            if not isinstance(value, (str, type(None))):
                where = f"metadata.{field}[{_quoted(key)}]"
                raise InvalidResponse(f"{item}: {where}: expected a string")
    finalizers = metadata.get("finalizers")
    if finalizers is None:
        return
    if not isinstance(finalizers, list) or not all(
        isinstance(value, (str, type(None))) for value in finalizers
    ):
        raise InvalidResponse(f"{item}: metadata.finalizers: expected an array of strings")


def _resolve_namespace(scope: Scope, ref: Ref, item: str) -> Ref:
    """Checks name and namespace, and returns the reference. A missing namespace defaults to the
    parent's. Kinds are namespaced unless they are declared as cluster-scoped.
    """
    for field, value in (("name", ref.name), ("namespace", ref.namespace)):
        if value in (".", "..") or "/" in value or "%" in value:
            problem = "may not be '.' or '..', and may not contain '/' or '%'"
            raise InvalidResponse(f"{item}: metadata.{field} is {_quoted(value)}: {problem}")
    if scope.declared[ref.kind]:
        if scope.namespace:
            raise InvalidResponse(
                f"{item}: is cluster-scoped; expected a namespaced object, because the parent is "
                "in a namespace"
            )
        if ref.namespace:
            raise InvalidResponse(
                f"{item}: metadata.namespace is {_quoted(ref.namespace)}; expected none, because "
                "the kind is cluster-scoped"
            )
        return ref
    if not ref.namespace and not scope.namespace:
        raise InvalidResponse(
            f"{item}: metadata.namespace is missing; expected one, because the parent is "
            "cluster-scoped "
            f"(if this kind is, too, declare it as {_quoted(ref.kind + CLUSTER)})"
        )
    if scope.namespace and ref.namespace not in ("", scope.namespace):
        got, expected = _quoted(ref.namespace), _quoted(scope.namespace)
        text = f"metadata.namespace is {got}; expected {expected}, the parent's"
        raise InvalidResponse(f"{item}: {text}")
    return Ref(ref.kind, ref.namespace or scope.namespace, ref.name)


def _dependencies(scope: Scope, refs: list[Ref], desired: list[Any]) -> None:
    """Checks that objects depend only on other desired objects, and that there is no cycle."""
    edges: dict[Ref, list[Ref]] = {ref: [] for ref in refs}
    for index, (ref, child) in enumerate(zip(refs, desired)):
        for dependency in child.depends_on:
            kind = f"{dependency.kind}.{dependency.api_version}"
            namespaced = scope.declared.get(kind) is False
            default = scope.namespace if namespaced else ""
            target = Ref(kind, dependency.namespace or default, dependency.name)
            problem = ""
            if target == ref:
                problem = "itself"
            elif target not in edges:
                problem = f"{target}, which is not desired"
            if problem:
                item = f"{scope.field}[{index}] {ref}"
                expected = "expected another of the desired objects"
                raise InvalidResponse(f"{item}: depends on {problem}; {expected}")
            edges[ref].append(target)
    cycle = _find_cycle(edges)
    if cycle:
        first, *names = map(str, cycle)
        item = f"{scope.field}[{refs.index(cycle[0])}] {first}"
        path = " → ".join(names)
        raise InvalidResponse(f"{item}: the dependencies go in a circle: {path}")


def _find_cycle(edges: Mapping[Ref, list[Ref]]) -> list[Ref]:
    """Returns the first object that leads to a cycle, and the cycle with its first object repeated
    at the end. The list is empty if there is no cycle.
    """
    left = list(edges)
    while True:
        among = set(left)
        kept = [ref for ref in left if not among.isdisjoint(edges[ref])]
        if len(kept) == len(left):
            break
        left = kept
    if not left:
        return []
    path = [left[0]]
    while True:
        following = next(target for target in edges[path[-1]] if target in among)
        if following in path:
            return [left[0], *path[path.index(following) :], following]
        path.append(following)


def _patches(message: Any) -> None:
    labels, annotations = message.labels, message.annotations
    for key in (*labels.set, *labels.remove):
        problem = _qualified(key) or _label_value(labels.set.get(key, ""))
        if problem:
            raise InvalidResponse(f"labels[{_quoted(key)}]: {problem}")
    for key in (*annotations.set, *annotations.remove):
        problem = _qualified(key.lower())
        if not problem and key in _RESERVED["annotations"]:
            problem = "belongs to the engine; expected another key"
        if problem:
            raise InvalidResponse(f"annotations[{_quoted(key)}]: {problem}")


def _remarks(details: Any) -> None:
    for field in ("conditions", "events", "results"):
        count = len(getattr(details, field))
        if count > _LIMITS["remarks"]:
            raise InvalidResponse(f"{field}: are {count}, expected at most {_LIMITS['remarks']}")
    for index, condition in enumerate(details.conditions):
        item = f"conditions[{index}] {_quoted(condition.type)}"
        if condition.type in _RESERVED["conditions"]:
            raise InvalidResponse(f"{item}: belongs to the engine; expected another type")
        problem = _qualified(condition.type)
        if problem:
            raise InvalidResponse(f"{item}: type: {problem}")
        _reason(condition.reason, item)
    for field in ("events", "results"):
        for index, remark in enumerate(getattr(details, field)):
            _reason(remark.reason, f"{field}[{index}]")


def _reason(reason: str, item: str) -> None:
    if not _matches("reason", reason):
        expected = _FORMATS["reason"]["expected"]
        raise InvalidResponse(f"{item}: reason is {_quoted(reason)}; expected {expected}")


def _requirements(rules: Any) -> None:
    """Checks what can be checked without asking the API server for its resources."""
    limit = _LIMITS["requirements"]
    if len(rules) > limit:
        raise InvalidResponse(f"requirements are {len(rules)}, expected at most {limit}")
    named: dict[str, str] = {}
    for index, rule in enumerate(rules):
        item = f"requirements[{index}]" + (f" {_quoted(rule.name)}" if rule.name else "")
        problem = _rule_problem(rule)
        if problem:
            raise InvalidResponse(f"{item}: {problem}")
        resource = f"{rule.resource}.{rule.api_version}"
        earlier = named.setdefault(rule.name, resource)
        if rule.name and earlier != resource:
            raise InvalidResponse(
                f"{item}: selects {resource}, and an earlier rule of the name {earlier}; "
                "expected one resource for each name"
            )


def _rule_problem(rule: Any) -> str:
    """Returns what is wrong with a rule, or an empty string."""
    if rule.name and not _matches("group", rule.name):
        return f"name is not usable; expected {_FORMATS['group']['expected']}"
    fields = {each.json_name: value for each, value in rule.ListFields()}
    for field, expected in _RULES["relatedRule"]["required"].items():
        if field not in fields:
            return f"{field} is missing; expected {expected}"
    for one, other in _RULES["relatedRule"]["exclusive"]:
        if one in fields and other in fields:
            return f"{one} and {other} are both set; expected one of them"
    if "" in rule.names:
        return "names has an empty name; expected names of objects"
    for field in ("labelSelector", "namespaceSelector"):
        problem = _selector_problem(fields[field]) if field in fields else ""
        if problem:
            return f"{field}: {problem}"
    return ""


_NEED_VALUES = (
    related_pb2.LabelSelectorRequirement.OPERATOR_IN,
    related_pb2.LabelSelectorRequirement.OPERATOR_NOT_IN,
)


def _selector_problem(selector: Any) -> str:
    """Returns what is wrong with a selector, or an empty string."""
    for key, value in selector.match_labels.items():
        problem = _qualified(key) or _label_value(value)
        if problem:
            return f"matchLabels[{_quoted(key)}]: {problem}"
    for index, expression in enumerate(selector.match_expressions):
        problem = _qualified(expression.key)
        problem = problem or next(filter(None, map(_label_value, expression.values)), "")
        if not problem and (expression.operator in _NEED_VALUES) != bool(expression.values):
            problem = "In and NotIn need values, Exists and DoesNotExist have none"
        if problem:
            return f"matchExpressions[{index}]: {problem}"
    return ""


def _qualified(name: str) -> str:
    """Returns what is wrong with the key of a label or annotation, or with a condition's type, or
    an empty string.
    """
    prefix, slash, base = name.rpartition("/")
    if slash and (len(prefix) > _LIMITS["prefix"] or not _matches("prefix", prefix)):
        return f"the prefix before '/' must be {_FORMATS['prefix']['expected']}"
    return "" if _matches("name", base) else f"expected {_FORMATS['name']['expected']}"


def _label_value(value: str) -> str:
    if not value or _matches("name", value):
        return ""
    return f"expected a value of {_FORMATS['name']['expected']}"


def _matches(name: str, text: str) -> bool:
    """Returns whether a text has the format of that name."""
    return re.fullmatch(_FORMATS[name]["pattern"], text) is not None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
