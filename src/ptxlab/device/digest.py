"""A program's text as a digest: what was made of one program is right for another of the same digest."""

from hashlib import sha256

from ptxlab import ir
from ptxlab.syntax import format


def digest_of(module: ir.Module) -> str:
    """The digest of a module's text; it takes as long as printing it."""
    return sha256(format(module).encode("utf-8", "surrogateescape")).hexdigest()
