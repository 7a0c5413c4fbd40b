"""The answer: what is assumed, the obligations one by one, counterexamples that run, words."""
