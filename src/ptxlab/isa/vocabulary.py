"""Values in the syntax of many instructions, each with its own availability where that differs."""

from .form import Modifiers

SCOPE = ("cta gpu sys", ("cluster", "7.8 sm_90"))
SHARED = ("shared", ("shared::cta", "7.8"))  # the manual asks for sm_30, ptxas does not
ANY_SHARED = (*SHARED, ("shared::cluster", "7.8 sm_90"))


def together(m: Modifiers) -> str | None:
    """Semantics and scope come as a pair."""
    if (m.sem is None) == (m.scope is None):
        return None
    return f"`.{m.sem or m.scope}` needs a {'scope' if m.sem else 'memory order'} beside it"
