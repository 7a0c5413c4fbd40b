"""Text to program and program to text."""

from ptxlab.syntax.files import UNREADABLE, decode, load, read_bytes, read_text
from ptxlab.syntax.parser import parse, read
from ptxlab.syntax.printer import format

__all__ = ["UNREADABLE", "decode", "format", "load", "parse", "read", "read_bytes", "read_text"]
