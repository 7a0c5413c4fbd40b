"""What a random launch shows, and which of them a test runs; see the package."""

import argparse
import sys
from collections import Counter

from ptxlab.emulate.translate import effort
from tests.emulate.random_programs import CHOSEN, MAKERS, chosen, shown

OFTEN = 8  # launches that reach the same, more of which count no more


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("show", "choose"))
    parser.add_argument("name", choices=MAKERS)
    parser.add_argument("number", type=int, help="of the launch; or how many to choose from")
    parser.add_argument("--keep", type=int, default=100, help="how many to choose")
    given = parser.parse_args()
    effort.HIGHEST = 0
    if given.what == "show":
        launch = MAKERS[given.name](given.number)
        print(launch, shown(launch), sep="\n\n")
        return 0
    kept = {name: chosen(name) for name in MAKERS} | {given.name: choose(given.name, given.number, given.keep)}
    CHOSEN.write_text("".join(f"{name}: {' '.join(map(str, numbers))}\n" for name, numbers in kept.items()))
    return 0


def choose(name: str, count: int, keep: int) -> list[int]:
    """Those that reach most of what is reached by few of the others that are chosen."""
    from tests.mutants.reached import Statements
    from tests.mutants.switched import install_runtime

    statements = Statements()
    statements.watch()
    install_runtime(False)
    found = []
    for number in range(count):
        result, _ = MAKERS[name](number).run()
        reached: set[object] = {*statements.take()}
        for one in result.diagnostics:
            reached |= {(one.code, _plain(one.message)), *map(_plain, one.notes)}
        found.append(reached)
    have, kept, left = Counter[object](), [], set(range(1, count))
    while len(kept) < keep:
        best = max(left, key=lambda number: sum(1 / (1 + have[one]) ** 2 for one in found[number] if have[one] < OFTEN))
        kept.append(best)
        left.remove(best)
        have.update(found[best])
    missing = {one for reached in found[1:] for one in reached} - {*have}
    print(f"{name}: {keep} of {count}, which reach {len(have)} statements and texts, and not {len(missing)}")
    return sorted(kept)


def _plain(text: str) -> str:
    """A text without its numbers."""
    return "".join(one for one in text if not one.isdigit())


if __name__ == "__main__":
    sys.exit(main())
