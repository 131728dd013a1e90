"""Immutable values as JSON, exactly, and strictly back: what their types say, and nothing else. Whatever is read is
foreign.

A record (a named tuple or a dataclass) is an object of its fields; those that have their default are left out. Where
several records may stand, `is` names the one. An unknown key is ignored: another version may have more.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

EARLIEST: Final = -62_135_596_800.0
LATEST: Final = 253_402_300_800.0
"""The years 1 and 10000, in seconds since the epoch: every number with a point is a time, or smaller."""
_LARGEST: Final = 1 << 63

Encode = Callable[[Any], Any]
Decode = Callable[[Any], Any]
_MISSING: Final = object()


@cache
def encoder(shape: Any) -> Encode:
    """What writes a value of this type as JSON takes it."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        return _encode_any(_records_in(arguments), arguments)
    if origin is tuple:
        return _encode_tuple(arguments)
    if origin is Sequence:
        return _encode_tuple((arguments[0], Ellipsis))
    if origin in (dict, Mapping, types.MappingProxyType, *_MAPPINGS):
        encode = encoder(arguments[1])
        return lambda value: {key: encode(one) for key, one in value.items()}
    if _is_record(shape):
        return _encode_record(shape)
    if shape is object:
        return _itself
    if shape is str:
        # A word of an enumeration, where any word may stand.
        return str
    return _value if isinstance(shape, type) and issubclass(shape, Enum) else _itself


@cache
def decoder(shape: Any) -> Decode:
    """What reads a value of this type from what JSON holds. It raises ValueError with the reason, and nothing else."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        return _decode_any(_records_in(arguments), arguments)
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple:
        return _decode_tuple(arguments)
    if origin is Sequence:
        return _decode_tuple((arguments[0], Ellipsis))
    if origin in _MAPPINGS:
        return _decode_mapping(decoder(arguments[1]))
    if _is_record(shape):
        return _decode_record(shape)
    if isinstance(shape, type) and issubclass(shape, Enum):
        return _one_of({member.value: member for member in shape})
    return _PLAIN[shape]


_MAPPINGS: Final = (dict, Mapping)


def _is_record(shape: Any) -> bool:
    return dataclasses.is_dataclass(shape) or (isinstance(shape, type) and hasattr(shape, "_fields"))


def _records_in(shapes: tuple[Any, ...]) -> dict[str, Any]:
    """By name, the records of a union that has several."""
    records = {shape.__name__: shape for shape in shapes if _is_record(shape)}
    return records if len(records) > 1 else {}


def _fields(shape: Any) -> list[tuple[str, Any, Any]]:
    """Name, type and default of each field."""
    hints = get_type_hints(shape)
    if dataclasses.is_dataclass(shape):
        found = ((one.name, one.default) for one in dataclasses.fields(shape))
        return [(name, hints[name], _MISSING if value is dataclasses.MISSING else value) for name, value in found]
    return [(name, hints[name], shape._field_defaults.get(name, _MISSING)) for name in shape._fields]


# Writing


def _itself(value: Any) -> Any:
    return value


def _value(member: Any) -> Any:
    return member.value


def _encode_any(records: Mapping[str, Any], shapes: tuple[Any, ...]) -> Encode:
    if records:
        by_type = {shape: (name, encoder(shape)) for name, shape in records.items()}

        def encode_record(value: Any) -> Any:
            if value is None:
                return None
            name, encode = by_type[type(value)]
            return {"is": name, **encode(value)}

        return encode_record
    encoders = [encoder(shape) for shape in shapes if shape is not types.NoneType]
    encode = next((one for one in encoders if one is not _itself), _itself)
    return encode if encode is _itself else lambda value: None if value is None else encode(value)


def _encode_tuple(arguments: tuple[Any, ...]) -> Encode:
    if arguments[-1] is Ellipsis:
        encode = encoder(arguments[0])
        return list if encode is _itself else lambda values: [encode(one) for one in values]
    encoders = [encoder(one) for one in arguments]
    return lambda values: [encode(one) for encode, one in zip(encoders, values, strict=True)]


def _encode_record(shape: Any) -> Encode:
    fields = [(name, encoder(kind), default, type(default)) for name, kind, default in _fields(shape)]

    def encode(value: Any) -> dict[str, Any]:
        written = {}
        for name, encode_field, default, kind in fields:
            one = getattr(value, name)
            if one is not default and (type(one) is not kind or one != default):
                written[name] = encode_field(one)
        return written

    return encode


# Reading


def _wrong(value: object, wanted: str) -> ValueError:
    return ValueError(f"{str(value)[:40]!r} is no {wanted}")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _wrong(value, "text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not -_LARGEST < value < _LARGEST:
        raise _wrong(value, "whole number")
    return value


def _number(value: Any) -> float:
    # Also false for what is no number at all.
    if type(value) not in (int, float) or not EARLIEST <= value <= LATEST:
        raise _wrong(value, "number, or no time")
    return float(value)


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(value, "truth value")
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise _wrong(value, "null")


_PLAIN: Final[Mapping[Any, Decode]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _truth,
    types.NoneType: _nothing,
    object: _itself,
}


def _one_of(members: Mapping[Any, Any] | tuple[Any, ...]) -> Decode:
    known = members if isinstance(members, Mapping) else {one: one for one in members}

    def decode(value: Any) -> Any:
        if type(value) is not str or value not in known:
            raise _wrong(value, f"one of {', '.join(map(str, known))}")
        return known[value]

    return decode


def _decode_any(records: Mapping[str, Any], shapes: tuple[Any, ...]) -> Decode:
    may_be_none = types.NoneType in shapes
    if records:
        by_name = {name: decoder(shape) for name, shape in records.items()}

        def decode_record(value: Any) -> Any:
            if value is None and may_be_none:
                return None
            name = value.get("is") if type(value) is dict else None
            if type(name) is not str or name not in by_name:
                raise _wrong(name, f"one of {', '.join(by_name)}")
            return by_name[name](value)

        return decode_record
    decode = decoder(next(shape for shape in shapes if shape is not types.NoneType))
    return lambda value: None if value is None else decode(value)


def _decode_tuple(arguments: tuple[Any, ...]) -> Decode:
    if arguments[-1] is Ellipsis:
        decode = decoder(arguments[0])

        def decode_all(value: Any) -> Any:
            if type(value) is not list:
                raise _wrong(value, "list")
            return tuple([decode(one) for one in value])

        return decode_all
    decoders = [decoder(one) for one in arguments]

    def decode_each(value: Any) -> Any:
        if type(value) is not list or len(value) != len(decoders):
            raise _wrong(value, f"list of {len(decoders)}")
        return tuple([decode(one) for decode, one in zip(decoders, value, strict=True)])

    return decode_each


def _decode_mapping(decode: Decode) -> Decode:
    def decode_all(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, "object")
        return {key: decode(one) for key, one in value.items()}

    return decode_all


def _decode_record(shape: Any) -> Decode:
    fields = [(name, decoder(kind), default is _MISSING) for name, kind, default in _fields(shape)]
    name_of_all = shape.__name__

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, name_of_all)
        given = {}
        for name, decode_field, is_needed in fields:
            one = value.get(name, _MISSING)
            if one is not _MISSING:
                given[name] = decode_field(one)
            elif is_needed:
                raise ValueError(f"{name_of_all} without {name}")
        return shape(**given)

    return decode


# Moving in time


@cache
def shifter(shape: Any) -> Callable[[Any, float], Any] | None:
    """What gives a value of this type with all times in it (epoch seconds) so many seconds later; None where a type has
    no times."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        by_type = {one: shift for one in arguments if (shift := shifter(one)) is not None}
        if not by_type:
            return None
        others = {get_origin(one) or one: shift for one, shift in by_type.items()}

        def shift_any(value: Any, by: float) -> Any:
            shift = others.get(type(value))
            return value if shift is None else shift(value, by)

        return shift_any
    if origin is tuple:
        shift_one = shifter(arguments[0])
        if shift_one is None or arguments[-1] is not Ellipsis:
            return None
        return lambda values, by: tuple([shift_one(one, by) for one in values])
    return _shift_record(shape) if _is_record(shape) else None


def _shift_record(shape: Any) -> Callable[[Any, float], Any] | None:
    times = [name for name, kind, _ in _fields(shape) if _is_time(name, kind)]
    inner = [(name, found) for name, kind, _ in _fields(shape) if (found := shifter(kind)) is not None]
    if not times and not inner:
        return None

    def shift(value: Any, by: float) -> Any:
        moved = {name: shift_one(getattr(value, name), by) for name, shift_one in inner}
        moved |= {name: one + by for name in times if (one := getattr(value, name)) is not None}
        return dataclasses.replace(value, **moved) if dataclasses.is_dataclass(value) else value._replace(**moved)  # type: ignore[type-var]

    return shift


def _is_time(name: str, kind: Any) -> bool:
    is_number = kind is float or (get_origin(kind) in (Union, types.UnionType) and float in get_args(kind))
    # What a document says of itself stays as it was written.
    return is_number and name != "stated_at" and (name in ("at", "until") or name.endswith("_at"))
