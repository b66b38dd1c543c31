"""The generated files of the client for Node, written from the protocol and the Python client's methods."""

from __future__ import annotations

import json
import re
from typing import cast

import msgspec
from msgspec import inspect

from ...protocol.record import Record
from ...protocol.request import QUICK, Request
from ..python.request_methods import RequestMethod, RequestMethods

_COMMON = {"v", "rid", "token", "surface"}
_MEASUREMENT = {"options"}
_NAMES = {"Record": "MemoryRecord"}
"""Structs whose name means another type in TypeScript."""
_SCALARS = {"StrType": "string", "IntType": "number", "FloatType": "number", "BoolType": "boolean", "NoneType": "null"}


def generated_files() -> dict[str, str]:
    """Return each generated file's content by its name."""
    return {"requests.d.ts": _types(), "requests.js": _methods()}


def _written_from(source: str) -> str:
    return f"// Written from {source} by `python -m memd.clients.node`; a test compares the two.\n"


# --- methods -------------------------------------------------------------------------------------------------------
def _methods() -> str:
    rows: list[str] = []
    for name, method in _by_name().items():
        row = [_tag(method.request), [field.encode_name for field in _positional(method.request)]]
        rows.append(f"  {name}: {json.dumps(row)},\n")
    dated = [_tag(method.request) for method in _by_name().values() if "at" in method.request.__struct_fields__]
    return (
        _written_from("clients/python/request_methods.py")
        + "// Each method: its request, and the fields that are positional; an object with other fields follows them.\n"
        + f"export const METHODS = {{\n{''.join(rows)}}};\n"
        + f"// Requests whose `at` is the present.\nexport const DATED = {json.dumps(dated)};\n"
        + f"// Requests that the daemon answers fast.\nexport const FAST = {json.dumps(sorted(map(_tag, QUICK)))};\n"
    )


def _by_name() -> dict[str, RequestMethod[..., object]]:
    methods: dict[str, RequestMethod[..., object]] = {}
    for name, member in vars(RequestMethods).items():
        if isinstance(member, RequestMethod) and not cast("RequestMethod[..., object]", member).may_spool:
            methods[re.sub(r"_(\w)", lambda match: match[1].upper(), name)] = member
    return methods


def _fields(request: type[Request]) -> list[msgspec.structs.FieldInfo]:
    return [field for field in msgspec.structs.fields(request) if field.name not in _COMMON | _MEASUREMENT]


def _positional(request: type[Request]) -> list[msgspec.structs.FieldInfo]:
    return [field for field in _fields(request) if field.required and field.name != "at"]


def _tag(request: type[Request]) -> str:
    return str(request.__struct_config__.tag)


# --- types ---------------------------------------------------------------------------------------------------------
def _types() -> str:
    """Write an interface for each struct that a method takes or returns, and one with the methods. A field with a
    default is optional in what a method takes, and in replies that leave defaults out."""
    taken, returned = dict[str, str](), dict[str, str]()
    methods: list[str] = []
    for name, method in _by_name().items():
        if name == "remember":  # client.js makes its turn and origin
            _type(inspect.type_info(method.reply), returned, False)
            continue
        arguments = [f"{field.encode_name}: {_field_type(field, taken)}" for field in _positional(method.request)]
        optional = [field for field in _fields(method.request) if not field.required or field.name == "at"]
        options = [f"{field.encode_name}?: {_field_type(field, taken)}" for field in optional]
        if options:
            arguments.append(f"options?: {{ {'; '.join(options)} }}")
        reply = _type(inspect.type_info(method.reply), returned, False)
        about = " ".join((method.__doc__ or "").split())
        methods.append(f"  /** {about} */\n  {name}({', '.join(arguments)}): Promise<{reply}>;\n")
    interfaces = {**returned, **taken}
    return (
        _written_from("protocol/")
        + "".join(f"export interface {name} {{\n{fields}}}\n" for name, fields in sorted(interfaces.items()))
        + "\n/** The methods of `Client`. Each rejects with MemdError. */\nexport interface RequestMethods {\n"
        + "".join(methods)
        + "}\n"
    )


def _field_type(field: msgspec.structs.FieldInfo, interfaces: dict[str, str]) -> str:
    return _type(inspect.type_info(field.type), interfaces, True)


def _type(info: inspect.Type, interfaces: dict[str, str], is_taken: bool) -> str:
    """Return a type in TypeScript, and add the interfaces that it names."""
    match info:
        case inspect.Metadata():
            return _type(info.type, interfaces, is_taken)
        case inspect.StructType():
            return _interface(info, interfaces, is_taken)
        case inspect.UnionType():
            return " | ".join(dict.fromkeys(_type(member, interfaces, is_taken) for member in info.types))
        case inspect.LiteralType():
            return " | ".join(json.dumps(value) for value in info.values)
        case inspect.VarTupleType() | inspect.ListType():
            item = _type(info.item_type, interfaces, is_taken)
            return f"({item})[]" if " | " in item else f"{item}[]"
        case inspect.TupleType():
            return f"[{', '.join(_type(member, interfaces, is_taken) for member in info.item_types)}]"
        case inspect.DictType():
            return f"{{ [name: string]: {_type(info.value_type, interfaces, is_taken)} }}"
        case _:
            return _SCALARS.get(type(info).__name__, "unknown")


def _interface(info: inspect.StructType, interfaces: dict[str, str], is_taken: bool) -> str:
    name = _NAMES.get(info.cls.__name__, info.cls.__name__)
    if name not in interfaces:
        interfaces[name] = ""  # a struct may contain itself
        tag = [f"  {info.tag_field}: {json.dumps(info.tag)};\n"] if info.tag_field else []
        leaves_out = is_taken or info.cls.__struct_config__.omit_defaults
        fields = [
            f"  {field.encode_name}{'?' if leaves_out and not field.required else ''}: "
            f"{_type(field.type, interfaces, is_taken)};\n"
            for field in info.fields
        ]
        computed = ["  type: string;\n"] if info.cls is Record else []
        interfaces[name] = "".join([*tag, *fields, *computed])
    return name
