"""Random expressions of numbers, and what g++ makes of them: `python -m tests.debug.expressions` writes the file anew.

Nothing in them is undefined in C++ with `-fwrapv`: operands of `/`, `%`, `<<` and `>>` on the right are literals.
"""

import random
import subprocess
import tempfile
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")
COUNT = 250
TYPES = (
    "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long",
    "unsigned long", "long long", "unsigned long long", "float", "double",
)  # fmt: skip
WHOLE = TYPES[1:-2]
BITS = ("|", "^", "&")
BINARY = ("+", "-", "*", "==", "!=", "<", ">", "<=", ">=", "&&", "||")


def literal(draw: random.Random, is_whole: bool) -> str:
    """A number in one of the ways to write it."""
    number = draw.choice((0, 1, 2, 3, 7, 100, 255, draw.randrange(1 << 15)))
    ways = [str(number), f"{number}u", hex(number), f"{number}ll", f"{number}ul", "'A'", "true"]
    return draw.choice(ways if is_whole else [*ways, f"{number}.5", f"{number}.25f", "3e2", ".5f"])


def cast(draw: random.Random, type: str) -> str:
    """A number as a type that it fits into, or around which whole numbers wrap."""
    return f"({type}){literal(draw, type in WHOLE)}"


def expression(draw: random.Random, depth: int, is_whole: bool) -> str:
    """An expression, with parentheses now and then; of whole numbers where operators ask for them."""
    if depth == 0:
        return literal(draw, is_whole)

    def part(is_whole: bool = is_whole) -> str:
        return expression(draw, depth - 1, is_whole)

    kind = draw.randrange(12)
    if kind == 0:
        return cast(draw, draw.choice(WHOLE if is_whole else TYPES))
    if kind == 1:
        return f"{draw.choice('-+!')}{literal(draw, is_whole)}"
    if kind == 2:
        return f"~({part(True)})" if is_whole else f"({part(True)})"
    if kind == 3:
        type = draw.choice(WHOLE if is_whole else TYPES)
        return f"({part()} ? {cast(draw, type)} : {cast(draw, type)})"
    if kind in (4, 5):
        return f"({part()})"
    if kind == 6 and is_whole:
        return f"{part()} {draw.choice(BITS)} {part()}"
    if kind == 7 and is_whole:
        shifts = "".join(f" {draw.choice(('<<', '>>'))} {draw.randrange(8)}" for _ in range(draw.randrange(1, 4)))
        return f"({part()}{shifts})"
    if kind == 8:
        return f"{part()} / {draw.choice(('3', '7u', '-5', '2') if is_whole else ('3', '7u', '-5', '0.5f'))}"
    if kind == 9 and is_whole:
        return f"{part()} % {draw.choice(('3', '7u', '-5', '9ll'))}"
    return f"{part()} {draw.choice(BINARY)} {part()}"


def expressions() -> list[str]:
    """All of them, the same ones each time."""
    draw = random.Random(1)
    return [expression(draw, 1 + number % 4, draw.random() < 0.6) for number in range(COUNT)]


def main() -> None:
    texts = expressions()
    shown = "\n".join(f"    show({text});" for text in texts)
    program = f"""
#include <cstdio>
#include <type_traits>
template <class T> void show(T x) {{
    if constexpr (std::is_floating_point_v<T>) std::printf("%.17g\\n", double(x));
    else if constexpr (std::is_unsigned_v<T>) std::printf("%llu\\n", (unsigned long long)x);
    else std::printf("%lld\\n", (long long)x);
}}
int main() {{
{shown}
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "a.cpp", Path(folder) / "a"
        source.write_text(program)
        subprocess.run(["g++", "-std=c++17", "-w", "-fwrapv", str(source), "-o", str(made)], check=True)
        found = subprocess.run([made], check=True, capture_output=True, text=True).stdout.split()
    FILE.write_text("".join(f"{value} = {text}\n" for value, text in zip(found, texts, strict=True)))


if __name__ == "__main__":
    main()
