"""Applies the engine's rules for answers, as far as they follow from the parent and the declared kinds. Package testing uses it.

sdk/testdata/answers.json lists the rules; the engine, and the helpers of all SDKs, are tested with that table. The input is an answer as the
contract has it. Functions are pure; an error is an InvalidResponse that names the item.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hookloop.errors import InvalidResponse
from hookloop.hook.v1 import answer_pb2, customize_pb2

# Marks a declared kind as cluster-scoped: "Namespace.v1:Cluster".
CLUSTER = ":Cluster"
DECORATOR_ANNOTATION = "metacontroller.k8s.io/decorator-controller"
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
    """Declared kinds, and whether each is known to be cluster-scoped."""
    declared = {}
    for key in keys:
        kind = key.removesuffix(CLUSTER)
        if not _KIND.fullmatch(kind):
            raise ValueError(f"kind {_quoted(key)}: expected one such as Pod.v1, Deployment.apps/v1 or Namespace.v1{CLUSTER}")
        declared[kind] = kind != key
    return declared


@dataclass(frozen=True)
class Ref:
    """Identifies a desired object as the engine does."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {_quoted(f'{self.namespace}/{self.name}' if self.namespace else self.name)}"


@dataclass(frozen=True)
class Scope:
    """What answers are checked against. field is children or attachments, namespace the parent's."""

    field: str
    namespace: str
    declared: Mapping[str, bool]


def validate(scope: Scope, message: Any, desired: list) -> None:
    """Raises InvalidResponse if the engine would refuse an answer. If a result is fatal, the engine looks at nothing else but the
    requirements."""
    _requirements(message.requirements)
    if any(result.severity == answer_pb2.SEVERITY_FATAL for result in message.results):
        return
    refs = _children(scope, [json.loads(one.body) for one in desired])
    _dependencies(scope, refs, desired)
    if scope.field == "attachments":
        _patches(message)
    _remarks(message)


def _children(scope: Scope, objects: list) -> list[Ref]:
    refs: list[Ref] = []
    first: dict[Ref, int] = {}
    for index, found in enumerate(objects):
        item = f"{scope.field}[{index}]"
        metadata = found["metadata"]
        _metadata(metadata, item)
        ref = Ref(f"{found['kind']}.{found['apiVersion']}", metadata.get("namespace") or "", metadata["name"])
        item = f"{item} {ref}"
        if ref.kind not in scope.declared:
            raise InvalidResponse(f"{item}: kind is not declared by the controller; expected one of [{', '.join(sorted(scope.declared))}]")
        ref = _resolve_namespace(scope, ref, item)
        owner = (metadata.get("annotations") or {}).get(DECORATOR_ANNOTATION)
        if owner is not None and scope.field == "children":
            raise InvalidResponse(
                f"{item}: metadata.annotations[{_quoted(DECORATOR_ANNOTATION)}] is {_quoted(owner)}; expected none, because it names the "
                "decorator that an object belongs to"
            )
        if ref in first:
            earlier = f"{scope.field}[{first[ref]}]"
            raise InvalidResponse(f"{scope.field}[{index}] {ref}: is desired twice, first as {earlier}; expected each object once")
        first[ref] = index
        refs.append(ref)
    return refs


def _metadata(metadata: Mapping[str, Any], item: str) -> None:
    """Checks the types of the fields that every object has."""
    if not isinstance(metadata.get("namespace"), (str, type(None))):
        raise InvalidResponse(f"{item}: metadata.namespace: expected a string")
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if not isinstance(values, (dict, type(None))):
            raise InvalidResponse(f"{item}: metadata.{field}: expected an object with strings as values")
        for key, value in (values or {}).items():
            if not isinstance(value, (str, type(None))):
                raise InvalidResponse(f"{item}: metadata.{field}[{_quoted(key)}]: expected a string")
    finalizers = metadata.get("finalizers")
    if finalizers is not None and (
        not isinstance(finalizers, list) or not all(isinstance(value, (str, type(None))) for value in finalizers)
    ):
        raise InvalidResponse(f"{item}: metadata.finalizers: expected an array of strings")


def _resolve_namespace(scope: Scope, ref: Ref, item: str) -> Ref:
    """Checks name and namespace, and puts in the parent's namespace if the object has none. A kind is taken for namespaced unless it is
    declared as cluster-scoped."""
    for field, value in (("name", ref.name), ("namespace", ref.namespace)):
        if value in (".", "..") or "/" in value or "%" in value:
            raise InvalidResponse(f"{item}: metadata.{field} is {_quoted(value)}: may not be '.' or '..', and may not contain '/' or '%'")
    if scope.declared[ref.kind]:
        if scope.namespace:
            raise InvalidResponse(f"{item}: is cluster-scoped; expected a namespaced object, because the parent is in a namespace")
        if ref.namespace:
            raise InvalidResponse(f"{item}: metadata.namespace is {_quoted(ref.namespace)}; expected none, because the kind is cluster-scoped")
        return ref
    if not ref.namespace and not scope.namespace:
        raise InvalidResponse(
            f"{item}: metadata.namespace is missing; expected one, because the parent is cluster-scoped "
            f"(if this kind is, too, declare it as {_quoted(ref.kind + CLUSTER)})"
        )
    if scope.namespace and ref.namespace not in ("", scope.namespace):
        raise InvalidResponse(f"{item}: metadata.namespace is {_quoted(ref.namespace)}; expected {_quoted(scope.namespace)}, the parent's")
    return Ref(ref.kind, ref.namespace or scope.namespace, ref.name)


def _dependencies(scope: Scope, refs: list[Ref], desired: list) -> None:
    """Checks what objects depend on: other desired objects, without a cycle."""
    edges: dict[Ref, list[Ref]] = {ref: [] for ref in refs}
    for index, (ref, one) in enumerate(zip(refs, desired)):
        for named in one.depends_on:
            kind = f"{named.kind}.{named.api_version}"
            namespaced = scope.declared.get(kind) is False
            on = Ref(kind, named.namespace or (scope.namespace if namespaced else ""), named.name)
            problem = "itself" if on == ref else f"{on}, which is not desired" if on not in edges else ""
            if problem:
                raise InvalidResponse(f"{scope.field}[{index}] {ref}: depends on {problem}; expected another of the desired objects")
            edges[ref].append(on)
    cycle = _find_cycle(edges)
    if cycle:
        first, *names = map(str, cycle)
        raise InvalidResponse(f"{scope.field}[{refs.index(cycle[0])}] {first}: the dependencies go in a circle: {' → '.join(names)}")


def _find_cycle(edges: Mapping[Ref, list[Ref]]) -> list[Ref]:
    """The first object from which a cycle can be reached, and the cycle, its first object at its end again; empty if there is none."""
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
        following = next(on for on in edges[path[-1]] if on in among)
        if following in path:
            return [left[0], *path[path.index(following):], following]
        path.append(following)


def _patches(message: Any) -> None:
    for key in (*message.set_labels, *message.remove_labels):
        problem = _qualified(key) or _label_value(message.set_labels.get(key, ""))
        if problem:
            raise InvalidResponse(f"labels[{_quoted(key)}]: {problem}")
    for key in (*message.set_annotations, *message.remove_annotations):
        problem = _qualified(key.lower()) or ("belongs to the engine; expected another key" if key == LAST_APPLIED else "")
        if problem:
            raise InvalidResponse(f"annotations[{_quoted(key)}]: {problem}")


def _remarks(message: Any) -> None:
    for field in ("conditions", "events", "results"):
        count = len(getattr(message, field))
        if count > MAX_REMARKS:
            raise InvalidResponse(f"{field}: are {count}, expected at most {MAX_REMARKS}")
    for index, condition in enumerate(message.conditions):
        item = f"conditions[{index}] {_quoted(condition.type)}"
        if condition.type in ENGINE_CONDITIONS:
            raise InvalidResponse(f"{item}: belongs to the engine; expected another type")
        problem = _qualified(condition.type)
        if problem:
            raise InvalidResponse(f"{item}: type: {problem}")
        _reason(condition.reason, item)
    for field in ("events", "results"):
        for index, remark in enumerate(getattr(message, field)):
            _reason(remark.reason, f"{field}[{index}]")


def _reason(reason: str, item: str) -> None:
    if not _REASON.fullmatch(reason):
        raise InvalidResponse(f"{item}: reason is {_quoted(reason)}; expected one word in camel case such as AllUp")


def _requirements(rules: Any) -> None:
    """Checks what can be checked without the resources of an API server."""
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
            raise InvalidResponse(f"{item}: selects {resource}, and an earlier rule of the name {earlier}; expected one resource for each name")


def _rule_problem(rule: Any) -> str:
    labels, namespaces = rule.HasField("label_selector"), rule.HasField("namespace_selector")
    problems = {
        "name is not usable; expected at most 63 letters, digits, '-' and '_'": rule.name and not _GROUP.fullmatch(rule.name),
        "apiVersion is missing; expected one such as v1 or apps/v1": not rule.api_version,
        "resource is missing; expected a plural name such as configmaps": not rule.resource,
        "names and labelSelector are both set; expected one of them": rule.names and labels,
        "names and namespaceSelector are both set; expected one of them": rule.names and namespaces,
        "namespace and namespaceSelector are both set; expected one of them": rule.namespace and namespaces,
        "names has an empty name; expected names of objects": "" in rule.names,
    }
    for problem, found in problems.items():
        if found:
            return problem
    for field, selector in (("labelSelector", rule.label_selector), ("namespaceSelector", rule.namespace_selector)):
        problem = _selector_problem(selector)
        if problem:
            return f"{field}: {problem}"
    return ""


def _selector_problem(selector: Any) -> str:
    for key, value in selector.match_labels.items():
        problem = _qualified(key) or _label_value(value)
        if problem:
            return f"matchLabels[{_quoted(key)}]: {problem}"
    exact = (customize_pb2.LabelSelectorRequirement.OPERATOR_IN, customize_pb2.LabelSelectorRequirement.OPERATOR_NOT_IN)
    for index, expression in enumerate(selector.match_expressions):
        problem = _qualified(expression.key) or next(filter(None, map(_label_value, expression.values)), "")
        if not problem and (expression.operator in exact) != bool(expression.values):
            problem = "In and NotIn need values, Exists and DoesNotExist have none"
        if problem:
            return f"matchExpressions[{index}]: {problem}"
    return ""


def _qualified(name: str) -> str:
    """What is wrong with a key of a label or annotation, or the type of a condition; empty if nothing is."""
    prefix, slash, base = name.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return "the prefix before '/' must be a DNS name in lower case"
    if not _NAME.fullmatch(base):
        return "expected at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return ""


def _label_value(value: str) -> str:
    if not value or _NAME.fullmatch(value):
        return ""
    return "expected a value of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
