"""When parts of the language other than instructions became available: directives, declarations, types, initializers.

`example` is a piece of a module that uses the feature; the tests ask ptxas about it at `since` and one step below.
"""

from ptxlab.values import dataclass

from .targets import Since, since


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of the language with its availability; `text` names it in a message."""

    text: str
    since: Since
    example: str


_KERNEL = ".entry k() { ret; }"

FEATURES = {
    "address_size": Feature("`.address_size`", since("2.3"), f".address_size 64\n{_KERNEL}"),
    "kernel_parameters": Feature("parameters of kernels", since("1.4"), ".entry k(.param .u32 a) { ret; }"),
    "param_in_functions": Feature(
        "`.param` in functions", since("2.0 sm_20"), ".func f(.param .b32 a) { ret; }\n" + _KERNEL
    ),
    "large_parameters": Feature(
        "more than 4352 bytes of kernel parameters", since("8.1 sm_70"), ".entry k(.param .b8 a[4356]) { ret; }"
    ),
    "ptr": Feature("`.ptr`", since("2.2"), ".entry k(.param .u64 .ptr .global .align 16 a) { ret; }"),
    "weak": Feature("`.weak`", since("3.1"), f".weak .global .u32 g;\n{_KERNEL}"),
    "common": Feature("`.common`", since("5.0"), f".common .global .u32 g;\n{_KERNEL}"),
    "managed": Feature(
        "`.attribute(.managed)`", since("4.0 sm_30"), f".visible .global .attribute(.managed) .u32 g;\n{_KERNEL}"
    ),
    "unified": Feature(
        "`.attribute(.unified)`", since("8.0 sm_90"), f".func .attribute(.unified(1, 2)) f() {{ ret; }}\n{_KERNEL}"
    ),
    "alias": Feature(
        "`.alias`", since("6.3 sm_30"), f".visible .func f() {{ ret; }}\n.visible .func g();\n.alias g, f;\n{_KERNEL}"
    ),
    "pragma": Feature("`.pragma`", since("2.0"), '.entry k() { .pragma "nounroll"; ret; }'),
    "used_bytes_mask": Feature(
        "the pragma `used_bytes_mask`",
        since("8.3 sm_50"),
        '.entry k() { .reg .b32 %r<3>; .reg .b64 %a; .pragma "used_bytes_mask 0xf"; ld.global.v2.u32 {%r1,%r2},[%a]; }',
    ),
    "enable_smem_spilling": Feature(
        "the pragma `enable_smem_spilling`", since("8.7 sm_75"), '.entry k() { .pragma "enable_smem_spilling"; ret; }'
    ),
    "frequency": Feature("the pragma `frequency`", since("9.0"), '.entry k() { .pragma "frequency 5"; ret; }'),
    "mma_throughput": Feature(
        "the pragma `mma_throughput`", since("9.3"), '.entry k() { .pragma "mma_throughput 1"; }'
    ),
    "branchtargets": Feature("`.branchtargets`", since("5.1 sm_30"), ".entry k() { ts: .branchtargets L; L: ret; }"),
    "callprototype": Feature("`.callprototype`", since("2.1 sm_20"), ".entry k() { pt: .callprototype _ (); ret; }"),
    "calltargets": Feature(
        "`.calltargets`", since("2.1 sm_20"), ".func f() { ret; }\n.entry k() { ts: .calltargets f; ret; }"
    ),
    "generic": Feature("`generic()`", since("3.1"), f".global .u32 g;\n.global .u64 p = generic(g);\n{_KERNEL}"),
    "mask": Feature("a byte of an address", since("7.1"), f".global .u32 g;\n.global .u8 p = 0xff(g);\n{_KERNEL}"),
    "address_initializer": Feature(
        "addresses as initial values", since("2.1"), f".global .u32 g;\n.global .u64 p = g;\n{_KERNEL}"
    ),
    "function_initializer": Feature(
        "functions as initial values", since("2.1 sm_20"), f".func f() {{ ret; }}\n.global .u64 p = f;\n{_KERNEL}"
    ),
    "f16x2": Feature("the type `.f16x2`", since("4.2 sm_53"), f".global .f16x2 g;\n{_KERNEL}"),
    "b128": Feature("the type `.b128`", since("8.3 sm_70"), f".global .b128 g;\n{_KERNEL}"),
    "opaque": Feature("opaque types", since("1.5"), f".global .texref t;\n{_KERNEL}"),
    "section": Feature("`.section`", since("2.0"), _KERNEL + "\n.section .debug_str { .b8 0 }"),
    "section_label": Feature("labels in `.section`", since("7.0"), _KERNEL + "\n.section .debug_str { foo: .b8 0 }"),
    "section_difference": Feature(
        "differences of labels in `.section`", since("7.5"), _KERNEL + "\n.section .debug_str { a: .b8 0\n.b32 a-a\n }"
    ),
    "section_negative": Feature(
        "negative numbers in `.section`", since("7.5"), _KERNEL + "\n.section .debug_str { .b8 -1 }"
    ),
    "inlined_at": Feature(
        "`inlined_at` of `.loc`",
        since("7.0"),
        '.file 1 "x"\n.entry k() { .loc 1 2 3\n.loc 1 5 6, function_name foo, inlined_at 1 2 3\n ret; }\n'
        ".section .debug_str { foo: .b8 0 }",
    ),
    "loc_intermediate": Feature(
        "`.loc_intermediate`", since("9.4"), '.file 1 "x"\n.entry k() { .loc 1 2 3\n.loc_intermediate 1 4 5\n ret; }'
    ),
    "source_section": Feature(
        "`.nv_intermediate_source_section`", since("9.4"), f"{_KERNEL}\n.nv_intermediate_source_section {{ }}"
    ),
    "file_times": Feature("time and size of `.file`", since("3.2"), f'.file 1 "x", 1, 2\n{_KERNEL}'),
}
