"""Text to program and program to text."""

from ptxlab.syntax.files import decode, load, read_text
from ptxlab.syntax.parser import parse, read
from ptxlab.syntax.printer import format

__all__ = ["decode", "format", "load", "parse", "read", "read_text"]
