"""Values that stand in the syntax of many instructions, each with its own availability where that differs."""

SCOPE = ("cta gpu sys", ("cluster", "7.8 sm_90"))
SHARED = ("shared", ("shared::cta", "7.8 sm_30"))
