"""The pydantic model of an act's fields, for forms and JSON input, and what is wrong with a given value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from acp_core.model.action import Action
from acp_core.model.action_field import Field, Kind
from acp_core.protocols.kit.values import chosen, seconds

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


_PLAIN = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "bool_type": "must be yes or no",
    "bool_parsing": "must be yes or no",
    "string_type": "must be text",
    "list_type": "must be a list",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
}


def problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    """The field that each problem is about ("" for the whole), and what is wrong with it."""
    for each in error.errors(include_url=False, include_input=False):
        yield (str(each["loc"][0]) if each["loc"] else ""), _message(each)


def _message(each: ErrorDetails) -> str:
    kind, context = each["type"], each.get("ctx", {})
    if kind in ("string_too_short", "too_short"):
        least = context.get("min_length", 1)
        what = "characters" if kind == "string_too_short" else "entries"
        return "is missing" if least == 1 else f"must have at least {least} {what}"
    if kind in _PLAIN:
        return _PLAIN[kind].format_map(context)
    return str(each["msg"]).removeprefix("Value error, ")


MULTILINE = frozenset({"multiline", "textarea", "markdown"})
"""Values of ``format`` in a model's schema that ask for several lines."""

Schema = Mapping[str, Any]


class Inputs:
    """A pydantic model that is made from fields when something of it is first asked for."""

    def __init__(self, name: str, fields: tuple[Field, ...]) -> None:
        """Make it for the fields that forms have, under the name of the act."""
        self._name, self._fields = name, fields

    @cached_property
    def model(self) -> type[BaseModel]:
        """The model."""
        return model(self._name, self._fields)

    def __getattr__(self, name: str) -> Any:
        """What the model has: ``model_validate``, ``model_json_schema``, ``model_fields``."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def __call__(self, **values: Any) -> BaseModel:
        """An instance of the model."""
        return self.model(**values)


def inputs(name: str, fields: tuple[Field, ...]) -> type[BaseModel]:
    """The inputs of an action, of which the model is made late."""
    return cast("type[BaseModel]", Inputs(name, fields))


def model(name: str, fields: tuple[Field, ...]) -> type[BaseModel]:
    """The model of the fields that forms have."""
    from pydantic import create_model

    called = "".join(map(str.capitalize, name.replace("-", "_").split("_")))
    made: dict[str, Any] = {each.name: _annotated(each) for each in fields if each.form}
    return create_model(called, **made)


def _annotated(field: Field) -> tuple[Any, Any]:
    from pydantic import AliasChoices, BeforeValidator
    from pydantic import Field as Described

    names = [each[2:].replace("-", "_") for each in (f"--{field.name}", *field.aliases)]

    extra: dict[str, Any] = {"format": "multiline"} if field.kind is Kind.LINES else {}
    if field.labels:
        extra["labels"] = dict(field.labels)
    kind: Any = _kind(field)
    if field.kind is Kind.CHOICE and field.labels:
        kind = Annotated[kind, BeforeValidator(_by_label(field))]
    if field.kind is Kind.LIST:
        kind = Annotated[kind, BeforeValidator(_several)]
    if field.kind is Kind.DURATION:
        kind = Annotated[kind, BeforeValidator(_seconds)]
    described = Described(
        *_default(field), title=field.title or _words(field.name), description=field.help,
        json_schema_extra=extra or None, **_bounds(field),
        validation_alias=AliasChoices(*names) if field.aliases else None,
    )  # fmt: skip
    return kind, described


def _kind(field: Field) -> Any:
    if field.kind is Kind.CHOICE and field.choices:
        wanted: Any = Literal[field.choices]
        return wanted if field.required or field.default is not None else wanted | None
    if field.kind is Kind.LIST and field.choices and not (field.names or field.names_from):
        return list[Literal[field.choices]]  # type: ignore[name-defined]
    plain: dict[Kind, Any] = {Kind.FLAG: bool, Kind.LIST: list[str]}
    number = {Kind.NUMBER: int, Kind.DURATION: float, Kind.DECIMAL: float}.get(field.kind)
    if number is not None:
        return number if field.required or field.default is not None else number | None
    return plain.get(field.kind, str)


def _default(field: Field) -> tuple[Any, ...]:
    if field.default is None and field.required:
        return ()
    if field.kind is Kind.CHOICE and field.default is None:
        return (None,)
    return (field.empty,)


def _bounds(field: Field) -> dict[str, Any]:
    if field.kind in (Kind.NUMBER, Kind.DURATION, Kind.DECIMAL):
        return {"ge": field.least, "le": field.most}
    if field.kind in (Kind.CHOICE, Kind.FLAG):
        return {}
    least = field.least if field.least is not None else 1 if field.required else None
    return {"min_length": least, "max_length": field.most}


def _several(value: Any) -> Any:
    """A list; one text stands for a list of it, and an empty one for none."""
    return ([value] if value else []) if isinstance(value, str) else value


def _seconds(value: Any) -> Any:
    """A duration, with or without a unit; what is none is left for the model to refuse."""

    return seconds(value) if isinstance(value, str) and value.strip() else value


def _by_label(field: Field) -> Any:

    return lambda value: chosen(field, value) if isinstance(value, str) else value


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


# --- fields of a model ----------------------------------------------------------------------


def fields(action: Action) -> tuple[Field, ...]:
    """What forms ask for: the fields of an action, or those that its own model describes."""
    if action.fields is not None:
        return tuple(each for each in action.fields if each.form)
    schema = action.inputs.model_json_schema()
    required = frozenset(schema.get("required", ()))
    return tuple(
        _described(name, each, schema, name in required, action.defaults)
        for name, each in schema.get("properties", {}).items()
    )


def _described(
    name: str, described: Schema, schema: Schema, required: bool, defaults: Mapping[str, object]
) -> Field:
    here = _resolved(described, schema)
    given = [_resolved(each, schema) for each in here.get("anyOf", ())]
    kinds = [each for each in given if each != {"type": "null"}]
    shape = kinds[0] if len(kinds) == 1 else here
    choices = (shape["const"],) if "const" in shape else tuple(shape.get("enum", ()))
    default = defaults.get(name, described.get("default"))
    return Field(
        name,
        str(described.get("title", _words(name))),
        str(described.get("description", "")),
        Kind.CHOICE if choices else _shape(shape, described.get("format", shape.get("format"))),
        choices,
        described.get("labels", {}),
        getattr(default, "value", default),
        required=required and name not in defaults,
        optional={"type": "null"} in given,
    )


def _shape(shape: Schema, form: object) -> Kind:
    kind = str(shape.get("type"))
    if kind == "string" or kind not in _SHAPES:
        return Kind.LINES if form in MULTILINE else Kind.TEXT
    return _SHAPES[kind]


_SHAPES = {
    "boolean": Kind.FLAG,
    "integer": Kind.NUMBER,
    "number": Kind.DURATION,
    "array": Kind.LIST,
}


def _resolved(described: Schema, schema: Schema) -> Schema:
    reference = described.get("$ref")
    if not isinstance(reference, str):
        return described
    found: Schema = schema.get("$defs", {}).get(reference.rpartition("/")[2], {})
    return found
