"""The pages that `ptxlab explain` shows for unreadable files: files that are not PTX, and wrong syntax.

Each page says in a sentence what is wrong, then why or what to do; those on the language have an example that the
parser refuses with this code.
"""

_HEADER = ".version 8.0\n.target sm_80\n"


def _page(text: str, wrong: str = "") -> str:
    return f"{text}\n\nWrong:\n\n```ptx\n{wrong}\n```" if wrong else text


PAGES = {
    "missing-file": "There is no file of this name.",
    "is-a-directory": "A directory was given where a file belongs. `ptxlab check` searches directories for `*.ptx`.",
    "unreadable-file": "The file exists, but the system does not allow reading it.",
    "oversized-file": "The file has more than 256 MB.\n\nNo PTX has, but a device such as `/dev/zero` never ends.",
    "silent-pipe": "The path is a pipe, and for ten seconds nothing wrote to it.",
    "binary-file": "The file holds bytes, not text.\n\nA cubin or an object has machine code; PTX is what `nvcc -ptx` "
    "or `cuobjdump -ptx` prints. Text with a NUL character at its end is what NVRTC returns: a driver takes it, ptxas "
    "does not. `ptxlab.parse` takes such a text.",
    "utf16-file": "The file is encoded in UTF-16.\n\nptxas reads ASCII: convert it with `iconv -f UTF-16 -t ASCII`.",
    "non-ascii-character": _page(
        "A character is not ASCII.\n\nptxas 13.0 refuses it even in a comment.",
        f"{_HEADER}// größer\n.entry k() {{ ret; }}",
    ),
    "missing-version": _page(
        "The file does not start with `.version`, as every PTX file must.", ".target sm_80\n.entry k() { ret; }"
    ),
    "missing-target": _page("A file must name its `.target` after `.version`.", ".version 8.0\n.entry k() { ret; }"),
    "missing-semicolon": _page(
        "A statement has no `;` at its end, so it runs into the next one.\n\nThe line shown is where the next "
        "statement starts, as in ptxas.",
        f"{_HEADER}.entry k() {{\n    bar.sync 0\n    ret;\n}}",
    ),
    "missing-colon": _page(
        "A label has no `:` after it.\n\n`--fix` writes it.",
        f"{_HEADER}.entry k() {{\n    bra DONE;\nDONE\n    ret;\n}}",
    ),
    "missing-body": _page(
        "A kernel or function has neither a body in braces nor the `;` of a prototype.",
        f"{_HEADER}.func f()\n    ret;\n}}",
    ),
    "misplaced-directive": _page(
        "A variable with linkage, such as `.visible` or `.extern`, is inside a function; it belongs outside.",
        f"{_HEADER}.entry k() {{\n    .visible .global .u32 g;\n    ret;\n}}",
    ),
    "unknown-directive": _page(
        "There is no directive of this name, or it is not allowed here.",
        f"{_HEADER}.entry k() {{\n    .foo 1;\n    ret;\n}}",
    ),
    "unexpected-token": _page(
        "A token is where the grammar does not allow it.\n\nThe message says what was expected.",
        f"{_HEADER}.entry k() {{\n    .reg .u32 %r<2>;\n    mov.u32 %r1, , 1;\n    ret;\n}}",
    ),
    "unclosed-brace": _page("A `{` has no `}`.", f"{_HEADER}.entry k() {{\n    ret;"),
    "stray-brace": _page("A `}` has no `{`.", f"{_HEADER}.entry k() {{ ret; }}\n}}"),
    "nested-too-deeply": "More braces or parentheses are open at once than any program needs.",
    "too-many-branches": (
        "All `brx.idx` of a function together go to more than 1,000,000 labels, counted once for each branch.\n\n"
        "Every analysis follows each of these branches. Share one `brx.idx` between the places that branch by the same "
        "list, or call a function."
    ),
    "unterminated-comment": _page(
        "A `/*` has no `*/`.\n\nptxas does not terminate on such a file.", f"{_HEADER}.entry k() {{ ret; }}\n/* the end"
    ),
    "unterminated-string": _page(
        "A string has no closing quote on its line.", f'{_HEADER}.file 1 "kernel.cu\n.entry k() {{ ret; }}'
    ),
    "constant-overflow": _page(
        "A constant does not fit into 64 bits, or into its floating-point format.",
        f"{_HEADER}.global .u64 g = 99999999999999999999;\n.entry k() {{ ret; }}",
    ),
    "constant-type-mismatch": _page(
        "A constant expression mixes integers and floating-point numbers, or uses an operator that floats lack.",
        f"{_HEADER}.global .u32 g = 1 << 1.5;\n.entry k() {{ ret; }}",
    ),
    "division-by-zero": _page(
        "A constant expression divides by zero.", f"{_HEADER}.global .u32 g = 1 / 0;\n.entry k() {{ ret; }}"
    ),
}
