"""Command line of the fuzzer; exits 1 if it finds something."""

import sys

from tests.fuzz.examine import Finding
from tests.fuzz.loop import fuzz, options_of
from tests.fuzz.minimize import minimize
from tests.fuzz.programs import KINDS, every
from tests.fuzz.workers import Worker


def main(arguments: list[str]) -> int:
    options = options_of(arguments, "Random programs through ptxlab.", KINDS)
    questions = (one for one in every(options.seed) if one[0] in options.kinds.split(","))
    return fuzz(options, questions, [Worker() for _ in range(options.jobs)], _smaller, ".ptx")


def _smaller(worker: Worker, kind: str, seed: str, text: str, finding: Finding) -> bytes:
    """A program with fewer lines that shows the same, after what it shows."""
    fewer = minimize(kind, seed, text, finding.what, worker)
    worker.question = ()
    head = "".join(f"// {line}\n" for line in finding.text.strip().splitlines()[-12:])
    return (head + fewer).encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
