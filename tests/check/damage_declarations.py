"""Damage to what is not an instruction: declarations, functions, calls, directives, debug information.

Each kind takes the lines of a file and the number of one, and returns that line changed, or None where it has nothing
to change. `KINDS` lists them, for `damage.py`.
"""

import random
import re

from tests.check.damage_text import NUMBER, Damage, any_match, code, replace

_SPACES = "reg global shared local const param tex".split()
_TYPES = "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s32 s64 f16 f16x2 f32 f64 bf16 texref".split()
_DECLARATION = re.compile(r"\.(?:reg|global|shared|local|const|param)\b.*\.(?:[busf]\d+|f16x2|pred|texref)\b")
_LINKED = re.compile(r"^\s*(\.(?:visible|extern|weak|common)\s+)?(?=\.(?:entry|func|global|const|shared)\b)")
_DIRECTIVE = re.compile(
    r"\.(?:maxntid|reqntid|minnctapersm|maxnreg|noreturn|reqnctapercluster|explicitcluster|maxclusterrank"
    r"|blocksareclusters|abi_preserve|abi_preserve_control)\b"
)
_DIRECTIVES = (
    ".maxntid 128 .maxntid 1,2,3,4 .maxntid 0 .maxntid 1024,1024 .reqntid 128 .reqntid 64,2,1 .reqntid .minnctapersm 2 "
    ".minnctapersm 0 .maxnreg 64 .maxnreg 0 .maxnreg 100000 .noreturn .reqnctapercluster 2 .reqnctapercluster 0 "
    ".explicitcluster .maxclusterrank 8 .blocksareclusters .abi_preserve 8 .maxnctapersm 4 .maxntid 4294967296 "
    ".reqntid -1 .minnctapersm 1,2"
)
_ARRAY = re.compile(r"([\w$%]+)\[(\w*)\]")
_CALL = re.compile(r"^(\s*(?:@!?[\w%$]+\s+)?call\S*\s+)(.*);(.*)$")


def _in_declarations(change: Damage) -> Damage:
    def mutate(lines: list[str], at: int, generator: random.Random) -> str | None:
        return change(lines, at, generator) if _DECLARATION.search(code(lines[at])) else None

    return mutate


def _alignment(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = re.search(r"\.align\s+(\S+)", line)
    if found is None:
        typed = re.search(r"(?=\.[busf]\d+\b)", line)
        return replace(line, typed, f".align {generator.choice('0 1 2 3 4 8 16 128 512 1024'.split())} ")
    values = "0 1 2 3 4 8 16 24 32 64 128 256 1024 65536 -4 8.0 x 4+4 0x10 4U 4294967296".split()
    changed = generator.choice(["", ".align", *(f".align {value}" for value in values)])
    return replace(line, found, changed)


def _array_size(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = any_match(_ARRAY, line, generator)
    if found is None:
        named = re.search(r"([\w$%]+)(\s*[,;)=]|\s*$)", code(line))
        extent = generator.choice(["[4]", "[]", "[0]", "[1][2]"])
        return None if named is None else replace(line, named, named[1] + extent + named[2])
    half = str(int(found[2]) // 2) if found[2].isdigit() else "2"
    extents = [
        "[]",
        "[0]",
        "[1]",
        f"[{half}]",
        "[-1]",
        "[2][3]",
        "[1.5]",
        "[x]",
        "",
        "[2+2]",
        "[][2]",
        "[2][]",
        "[0x8]",
    ]
    extents += ["[4294967296]", "[%r1]", "[2, 3]", "[", "[100000000]", "[4U]"]
    return replace(line, found, found[1] + generator.choice(extents))


def _initializer(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    values = [
        "0",
        "-1",
        "1.5",
        "0f3F800000",
        "300",
        "70000",
        "{0}",
        "{}",
        "{1, 2}",
        "{{1}}",
        "nowhere",
        "generic(x)",
        "0x1ffffffff",
        "1 +",
        '"a"',
        "{1,}",
        "0xff(x)",
        "-1.0",
        "0d3FF0000000000000",
        "0b11",
        "!0",
        "3/0",
    ]
    found = re.search(r"=\s*(.*?);", line)
    if found is None:
        return replace(line, re.search(r"\s*;", line), f" = {generator.choice(values)};")
    number = any_match(NUMBER, line[found.start() :], generator)
    if number is not None and generator.random() < 0.6:
        start = found.start()
        changed = generator.choice([v for v in values if v[0] not in "{"] + ["1, 2", ""])
        return line[: start + number.start()] + changed + line[start + number.end() :]
    return replace(line, found, generator.choice(values), 1)


def _declared_type(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = any_match(re.compile(r"\.(?:[busf]\d+|f16x2|pred|texref|samplerref|surfref)\b"), lines[at], generator)
    return replace(lines[at], found, generator.choice(["", ".v2 .f32", ".v4 .f64", ".v2", *(f".{t}" for t in _TYPES)]))


def _declared_space(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = any_match(re.compile(r"\.(?:reg|global|shared|local|const|param)\b"), lines[at], generator)
    return replace(lines[at], found, generator.choice(["", *(f".{space}" for space in _SPACES)]))


def _declared_name(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = any_match(re.compile(r"(?<![.\w%$])[A-Za-z_$%][\w$]*"), lines[at], generator)
    names = re.findall(r"(?<![.\w%$])[A-Za-z_$%][\w$]*", " ".join(lines[max(0, at - 6) : at + 6]))
    return replace(
        lines[at], found, generator.choice([*names, "_", "%tid", "add", "9lives", "a.b", "$x", "%", "fresh"])
    )


def _register_range(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = re.search(r"<(\d+)>", code(lines[at]))
    counts = ["", "<0>", "<1>", "<-1>", "<x>", "<2", "2>", "<1000000>", "<2.0>", "<1+1>", "<0x40>", "[4]", "<4><4>"]
    return replace(lines[at], found, generator.choice(counts))


def _parameter(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = re.search(r"\.param\b[^,;()]*", code(line))
    if found is None or line.strip().endswith(";"):
        return None
    whole = found[0].rstrip()
    pointer = re.sub(r"(\.u64|\.b64|\.u32)", r"\1 .ptr .shared .align 16", whole, count=1)
    choices = [
        "",
        f"{whole}, {whole}",
        f"{whole},",
        f"{whole}_more, {whole}",
        whole.replace(".param", ".reg"),
        pointer,
        whole.replace(".ptr", ""),
        whole.replace(".align", ".ptr .align"),
        whole.replace(" .", " , .", 1),
    ]
    return replace(line, found, generator.choice(choices))


def _call(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = _CALL.match(lines[at])
    if found is None:
        return None
    parts = [part.strip() for part in re.findall(r"(?:\([^)]*\)|[^,(])+", found[2])]
    lists = [index for index, part in enumerate(parts) if part.startswith("(")]
    which = generator.randrange(5)
    if which < 3 and lists:
        index = generator.choice(lists)
        inside = [part.strip() for part in parts[index][1:-1].split(",") if part.strip()]
        spot = generator.randrange(len(inside) + 1)
        extra = generator.choice(["0", "%r1", "%rd1", "1.0", "_", "nowhere", *inside])
        options = [
            inside[:spot] + inside[spot + 1 :],
            [*inside[:spot], extra, *inside[spot:]],
            inside[::-1],
            [*inside[:spot], extra, *inside[spot + 1 :]],
        ]
        parts[index] = f"({', '.join(options[which] if which < 2 else generator.choice(options[2:]))})"
    elif which == 3:
        del parts[generator.randrange(len(parts))]
    else:
        spot = generator.randrange(len(parts))
        parts[spot] = generator.choice(["nowhere", "%r1", "%rd1", "printf", "()", "(%r1)", "vprintf", "0"])
    return f"{found[1]}{', '.join(parts)};{found[3]}"


def _directive(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    extra = generator.choice(re.findall(r"\.[^.]+", _DIRECTIVES)).strip()
    found = _DIRECTIVE.search(code(line))
    if found is None:
        if not re.match(r"^\s*\)\s*$", line) or not lines[min(at + 1, len(lines) - 1)].strip().startswith((".", "{")):
            return None
        return f"{line} {extra}"
    number = any_match(NUMBER, line, generator)
    choices: list[str | None] = [f"{line} {extra}", replace(line, found, extra.split()[0]), f"{line} {line.strip()}"]
    if number is not None:
        values = ["0", "-1", "1, 1", "1.5", "", "100000", "4294967295", "x", "1, 1, 1, 1", "0x20", "1025", "2+2"]
        choices += [replace(line, number, value) for value in values]
    return generator.choice(choices)


def _linkage(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = _LINKED.match(lines[at])
    words = ["", ".visible ", ".extern ", ".weak ", ".common ", ".visible .visible ", ".visible .weak ", ".static "]
    return replace(lines[at], found, generator.choice(words))


def _pragma(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = re.search(r"\.pragma\s*(.*?);", line)
    values = [
        '""',
        '"nounroll"',
        '"what is this"',
        "nounroll",
        '"nounroll", "nounroll"',
        '"nounroll" "nounroll"',
        "",
        '"frequency 0"',
        '"frequency x"',
        '"used_bytes_mask 0xff"',
        '"used_bytes_mask"',
        "1",
    ]
    if found is None:
        return f"{line}\n.pragma {generator.choice(values)};" if re.match(r"^\s*[a-z].*;\s*$", line) else None
    return replace(line, found, generator.choice(values), 1)


def _location(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    if not re.match(r"^\s*\.(loc|file)\b", line):
        return (
            f"{line}\n.loc {generator.choice(['1 1 1', '99 1 1', '1 2', '1 0 0', ''])}" if line.endswith(";") else None
        )
    token = any_match(re.compile(r'"[^"]*"|[\w.$]+|[,+]'), line, generator)
    values = [
        "0",
        "-1",
        "7",
        "99",
        "1.5",
        "",
        "x",
        ",",
        "1 1",
        '"x"',
        "4294967296",
        "0x3",
        "function_name",
        "inlined_at",
    ]
    return replace(line, token, generator.choice(values))


def _data(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    if not re.match(r"^\s*\.b(8|16|32|64)\s", line) and not re.match(r"^\s*\.section\b", line):
        return None
    token = any_match(re.compile(r"[\w.$+-]+"), line, generator)
    values = [
        "0",
        "-1",
        "256",
        "-129",
        "1200",
        "70000",
        "4294967296",
        "-3000000000",
        "1.5",
        "",
        "x",
        "x+4",
        "x-y",
        "1,",
        "0xff",
        "0x1ff",
        ".b8",
        ".b32",
        ".u32",
        "}",
        ".debug_str",
        "18446744073709551615",
        "1 2",
        "1+1",
    ]
    return replace(line, token, generator.choice(values))


def _block(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    if not re.match(r"^\s*(@|[a-z]|\.reg|\$?\w+:|\.loc)", line):
        return None
    body = code(line)
    return generator.choice([f"{{ {body} }}", f"{{ {{ {body} }} }}", f"{{ {body}", f"}} {body} {{", f"{{ }} {body}"])


KINDS: dict[str, Damage] = {
    "alignment": _in_declarations(_alignment),
    "array size": _in_declarations(_array_size),
    "initializer": _in_declarations(_initializer),
    "declared type": _in_declarations(_declared_type),
    "declared space": _in_declarations(_declared_space),
    "declared name": _in_declarations(_declared_name),
    "register range": _register_range,
    "parameter": _parameter,
    "call": _call,
    "directive": _directive,
    "linkage": _linkage,
    "pragma": _pragma,
    "location": _location,
    "debug data": _data,
    "block": _block,
}
