"""Headers of the standard library for NVRTC, which has none: those of CCCL under their usual names, or nothing.

What a kernel uses of them is in `cuda::std`; what only the host uses need not be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

_OF_C = """assert ctype errno fenv float inttypes limits locale math setjmp signal stdarg stddef stdint stdio stdlib
string time"""
_OF_CPP = """algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts
condition_variable coroutine deque exception execution expected filesystem format forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map mdspan memory memory_resource
mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread
tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version"""
_INTEGERS = """\
#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t;
namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t;
using ::uint32_t; using ::uint64_t; using ::uintptr_t; using ::intptr_t; }
"""
# Of the driver's header, which declares functions of the host, device code needs a type.
_DRIVER = "#pragma once\ntypedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } CUtensorMap;\n"


def standard_headers(folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The name and the text of each header, where `folders` are searched for CCCL."""
    yield "cuda.h", _DRIVER
    names = [(f"c{name}", (f"{name}.h", f"c{name}")) for name in _OF_C.split()]
    for own, called in [*names, *((name, (name,)) for name in _OF_CPP.split())]:
        has_own = any((folder / "cuda" / "std" / own).is_file() for folder in folders)
        for name in called:
            yield name, _forwarding(own) if has_own else _INTEGERS if own == "cstdint" else "#pragma once\n"


def _forwarding(name: str) -> str:
    names = "namespace cuda { namespace std {} }\nnamespace std { using namespace cuda::std; }\n"
    return f"#pragma once\n{names}#include <cuda/std/{name}>\n"
