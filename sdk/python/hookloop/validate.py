"""Checks responses by the engine's rules, as far as these depend on nothing but the parent and the
declared kinds.

Module testing uses it. sdk/testdata/answers.json lists the rules; the tests of the engine and of
all SDKs read that table. Every error is an InvalidResponse that names the item.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Optional

from hookloop.errors import InvalidResponse
from hookloop.hook.v1 import related_pb2, response_pb2

# Marks a declared kind as cluster-scoped: "Namespace.v1:Cluster".
CLUSTER = ":Cluster"
# The engine marks objects with these annotations: they name the controller of an attachment or
# output, and an output's input. An output also carries a label of this name with a hash of the
# input's key.
DECORATOR_ANNOTATION = "metacontroller.k8s.io/decorator-controller"
MAP_ANNOTATION = "metacontroller.k8s.io/map-controller"
MAP_KEY = "metacontroller.k8s.io/map-key"
# Whom each annotation names, and which lists of desired objects may have it.
MARKS = (
    (DECORATOR_ANNOTATION, "decorator", "attachments"),
    (MAP_ANNOTATION, "map controller", "outputs"),
    (MAP_KEY, "input of a map controller", "outputs"),
)
MAX_NAMED = 10
# The controller's name in requests that module testing makes.
CONTROLLER_NAME = "test"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
ENGINE_CONDITIONS = ("Synced", "Updated", "DependenciesMet", "ChangesHeldBack", "ChildWarnings")
MAX_REMARKS, MAX_REQUIREMENTS = 32, 100

_KIND = re.compile(r"[^.:]+\.[^:]+")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?")
_GROUP = re.compile(r"[A-Za-z0-9_-]{1,63}")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


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
    for key, owner, field in MARKS:
        value = annotations.get(key)
        if value is not None and scope.field != field:
            raise InvalidResponse(
                f"{item}: metadata.annotations[{_quoted(key)}] is {_quoted(value)}; expected none, "
                f"because it names the {owner} that an object belongs to"
            )
    if scope.field != "outputs":
        return
    hashed = sha256(scope.map_key.encode()).hexdigest()[:32]
    for field, key, expected in (
        ("annotations", MAP_ANNOTATION, CONTROLLER_NAME),
        ("annotations", MAP_KEY, scope.map_key),
        ("labels", MAP_KEY, hashed),
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
        if not problem and key == LAST_APPLIED:
            problem = "belongs to the engine; expected another key"
        if problem:
            raise InvalidResponse(f"annotations[{_quoted(key)}]: {problem}")


def _remarks(details: Any) -> None:
    for field in ("conditions", "events", "results"):
        count = len(getattr(details, field))
        if count > MAX_REMARKS:
            raise InvalidResponse(f"{field}: are {count}, expected at most {MAX_REMARKS}")
    for index, condition in enumerate(details.conditions):
        item = f"conditions[{index}] {_quoted(condition.type)}"
        if condition.type in ENGINE_CONDITIONS:
            raise InvalidResponse(f"{item}: belongs to the engine; expected another type")
        problem = _qualified(condition.type)
        if problem:
            raise InvalidResponse(f"{item}: type: {problem}")
        _reason(condition.reason, item)
    for field in ("events", "results"):
        for index, remark in enumerate(getattr(details, field)):
            _reason(remark.reason, f"{field}[{index}]")


def _reason(reason: str, item: str) -> None:
    if not _REASON.fullmatch(reason):
        expected = "expected one word in camel case such as AllUp"
        raise InvalidResponse(f"{item}: reason is {_quoted(reason)}; {expected}")


def _requirements(rules: Any) -> None:
    """Checks what can be checked without asking the API server for its resources."""
    if len(rules) > MAX_REQUIREMENTS:
        raise InvalidResponse(f"requirements are {len(rules)}, expected at most {MAX_REQUIREMENTS}")
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
    labels, namespaces = rule.HasField("label_selector"), rule.HasField("namespace_selector")
    unusable_name = rule.name and not _GROUP.fullmatch(rule.name)
    problems = {
        "name is not usable; expected at most 63 letters, digits, '-' and '_'": unusable_name,
        "apiVersion is missing; expected one such as v1 or apps/v1": not rule.api_version,
        "resource is missing; expected a plural name such as configmaps": not rule.resource,
        "names and labelSelector are both set; expected one of them": rule.names and labels,
        "names and namespaceSelector are both set; expected one of them": rule.names and namespaces,
        "namespace and namespaceSelector are both set; expected one of them": (
            rule.namespace and namespaces
        ),
        "names has an empty name; expected names of objects": "" in rule.names,
    }
    for problem, found in problems.items():
        if found:
            return problem
    selectors = {
        "labelSelector": rule.label_selector,
        "namespaceSelector": rule.namespace_selector,
    }
    for field, selector in selectors.items():
        problem = _selector_problem(selector)
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
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return "the prefix before '/' must be a DNS name in lower case"
    if not _NAME.fullmatch(base):
        characters = "at most 63 letters, digits, '-', '_' and '.'"
        return f"expected {characters}, with a letter or digit at both ends"
    return ""


def _label_value(value: str) -> str:
    if not value or _NAME.fullmatch(value):
        return ""
    characters = "at most 63 letters, digits, '-', '_' and '.'"
    return f"expected a value of {characters}, with a letter or digit at both ends"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
