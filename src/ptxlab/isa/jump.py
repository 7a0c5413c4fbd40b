"""Where execution continues after an instruction, if not at the next one only."""

from enum import StrEnum


class Jump(StrEnum):
    """A word of the keyword `effects` of `@form`."""

    BRANCH = "branch"
    INDEXED_BRANCH = "indexed-branch"
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"
    TRAP = "trap"

    @property
    def ends(self) -> bool:
        """Whether it ends the function."""
        return self in (Jump.RETURN, Jump.EXIT, Jump.TRAP)

    @property
    def branches(self) -> bool:
        """Whether it continues at a label."""
        return self in (Jump.BRANCH, Jump.INDEXED_BRANCH)
