"""Command line of the fuzzer of inputs; exits 1 if it finds something."""

import sys
from itertools import count

from tests.fuzz.inputs import KINDS
from tests.fuzz.inputs.workers import InputWorker, lacking
from tests.fuzz.loop import fuzz, options_of


def main(arguments: list[str]) -> int:
    options = options_of(arguments, "Damaged inputs through ptxlab.", KINDS)
    kinds = []
    for kind in options.kinds.split(","):
        absent = lacking(kind)
        if absent:
            print(f"{kind}: skipped, since there is no {absent} here", flush=True)
        else:
            kinds.append(kind)
    questions = ((kind, f"{options.seed}.{number}") for number in count() for kind in kinds)
    workers = [InputWorker() for _ in range(options.jobs if kinds else 0)]
    return fuzz(options, questions, workers, lambda worker, kind, seed, text, finding: text.encode("latin-1"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
