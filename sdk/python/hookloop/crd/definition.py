"""Makes the CustomResourceDefinition for a class."""

from typing import Any, Optional

from hookloop.crd.fields import fields_of, source_of
from hookloop.crd.markers import Resource, resource_of
from hookloop.crd.schema import Builder, Schema, UnsupportedType

# What Hookloop adds to the status of a parent: the fields of metav1.Condition, and the generation.
_CONDITION: Schema = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
}
_STATUS: Schema = {
    "observedGeneration": {"type": "integer", "format": "int64"},
    "conditions": {
        "type": "array",
        "items": _CONDITION,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    },
}
# The fields of a class that the API server itself describes.
_OWN = ("apiVersion", "kind", "metadata")


def definition(cls: Any) -> dict[str, Any]:
    """Returns the CRD for a class with @custom_resource.

    The status contains the class's fields and the fields that Hookloop writes. UnsupportedType is
    raised for a type that a CRD cannot express.
    """
    resource = resource_of(cls)
    if resource is None:
        raise UnsupportedType(f"{cls.__name__}: has no @custom_resource(group=…, version=…)")
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": resource.kind + "List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": resource.scope,
            "names": names,
            "versions": [_version(cls, resource)],
        },
    }


def _version(cls: Any, resource: Resource) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
    }
    if resource.columns:
        version["additionalPrinterColumns"] = [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            for column in resource.columns
        ]
    version["schema"] = {"openAPIV3Schema": _schema(cls)}
    return version


def _schema(cls: Any) -> Schema:
    schema = Builder().object(cls)
    fields = {name: part for name, part in schema["properties"].items() if name not in _OWN}
    _check_fields(cls, fields)
    fields["status"] = _status(fields.get("status"))
    required = [name for name in schema.get("required", ()) if name not in (*_OWN, "status")]
    whole: Schema = {"type": "object"}
    if description := source_of(cls).description:
        whole["description"] = description
    if required:
        whole["required"] = required
    whole["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **fields,
    }
    return whole


def _check_fields(cls: Any, fields: Schema) -> None:
    """Checks top-level fields. A hook can change only the status, so a field that is misplaced
    there would be noticed late.
    """
    for field in fields_of(cls):
        if field.name in fields and field.name not in ("spec", "status"):
            source = source_of(cls)
            line = source.fields.get(field.attribute, (source.line, ""))[0]
            place = f"{source.file}:{line}: {cls.__name__}.{field.attribute}"
            raise UnsupportedType(f"{place}: expected only metadata, spec and status here")


def _status(schema: Optional[Schema]) -> Schema:
    """Returns a schema for the status, including the fields that Hookloop writes. No field is
    required, because Hookloop reports faults before the first response.
    """
    if schema is None:
        return {"type": "object", "properties": dict(_STATUS)}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"type": "object", **schema}
    schema = {key: part for key, part in schema.items() if key != "required"}
    return {**schema, "properties": {**schema.get("properties", {}), **_STATUS}}
