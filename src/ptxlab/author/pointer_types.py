"""Annotations of parameters and fields that are pointers: `pointer[f32]`, `shared_pointer[f32]`."""

from typing import TYPE_CHECKING, Generic, TypeVar

from ptxlab.author.elements import PointerType, element_of, is_structure
from ptxlab.author.lines import refuse
from ptxlab.author.pointers import Pointer

_POINTED = ("global", "shared", "const", "local", "param", "generic")

if TYPE_CHECKING:
    # To type checkers and editors these are pointers; when Python runs, `pointer[f32]` is a `PointerType`.
    E = TypeVar("E")

    class pointer(Pointer, Generic[E]):  # noqa: N801 - used in annotations beside `f32`
        """A pointer into global memory."""

    class shared_pointer(Pointer, Generic[E]):  # noqa: N801
        """A pointer into shared memory."""

    class generic_pointer(Pointer, Generic[E]):  # noqa: N801
        """A pointer that may point anywhere."""
else:

    class pointer:  # noqa: N801
        """`pointer[f32]` points into global memory, `pointer[f32, "const"]` into another space."""

        space = "global"

        def __class_getitem__(cls, item: object) -> PointerType:
            element, space = item if isinstance(item, tuple) else (item, cls.space)
            if space not in _POINTED:
                known = ", ".join(f"`{name}`" for name in _POINTED)
                refuse("missing-type", f"no pointer points into {space!r:.40}", helps=[f"expected one of {known}"])
            if not is_structure(element):
                element_of(element)
            return PointerType(element, None if space == "generic" else space)

    class shared_pointer(pointer):  # noqa: N801
        """`shared_pointer[f32]` points into shared memory."""

        space = "shared"

    class generic_pointer(pointer):  # noqa: N801
        """`generic_pointer[f32]` may point anywhere."""

        space = "generic"
