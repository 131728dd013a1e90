"""Anything that the types of the delegation allow, for tests that search at random."""

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from pydantic import BaseModel

from agentwatch.remote.protocol import Entry

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.floats(-1e9, 2e11) | st.sampled_from([0.0, -0.0, 1.0])
WHOLE = st.integers(-(1 << 40), 1 << 40)


def any_of(shape: Any) -> st.SearchStrategy[Any]:
    """Values of a type."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(any_of, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(any_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(any_of, arguments))
    if origin in (dict, Mapping):
        return st.dictionaries(TEXTS, any_of(arguments[1]), max_size=2)
    if origin is Annotated:
        return st.just("s-1")
    if shape is Entry:
        return st.sampled_from([*Entry.model_fields]).flatmap(
            lambda name: any_of(get_type_hints(Entry)[name].__args__[0]).map(lambda one: Entry(**{name: one}))
        )
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        hints = get_type_hints(shape, include_extras=True)
        return st.builds(shape, **{name: any_of(hints[name]) for name in shape.model_fields})
    if dataclasses.is_dataclass(shape) or hasattr(shape, "_fields"):
        names = [one.name for one in dataclasses.fields(shape)] if dataclasses.is_dataclass(shape) else shape._fields
        return st.deferred(lambda: st.builds(shape, **{name: any_of(get_type_hints(shape)[name]) for name in names}))
    if isinstance(shape, type) and issubclass(shape, Enum):
        return st.sampled_from(shape)
    known: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXTS,
        float: NUMBERS,
        int: WHOLE,
        bool: st.booleans(),
        types.NoneType: st.none(),
    }
    return known[shape]
