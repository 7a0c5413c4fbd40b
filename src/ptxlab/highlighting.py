"""A lexer of PTX for Pygments, and so for Sphinx, MkDocs, Jupyter and other programs that highlight by it.

Pygments has a lexer of this name, which stops at guards, `::` and pairs of predicates. Its own languages come first, so
that ours is called `ptxlab` where ptxlab is installed; in Sphinx, `extensions = ["ptxlab.highlighting"]` makes it the
lexer of `ptx`, and has kernels in strings of Python colored as PTX. It colors by form alone, so that a part of a file,
or what a later PTX has, is colored too.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pygments.lexer import RegexLexer, bygroups
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["PtxLexer", "PythonLexerOfPtx", "setup"]

_DIRECTIVES = (
    "version|target|address_size|visible|extern|weak|common|entry|func|reg|shared|global|const|local|param|align|ptr|alias|"
    "tex|maxntid|reqntid|maxnreg|minnctapersm|maxnctapersm|maxclusterrank|reqnctapercluster|explicitcluster|noreturn|"
    "blocksareclusters|branchtargets|calltargets|callprototype|attribute|pragma|loc|file|section"
)
_SPECIAL = (
    r"%(?:n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|lanemask_\w+|clock\w*|globaltimer\w*|pm\d+\w*|envreg\d+|"
    r"n?clusterid|cluster_\w+|is_explicit_cluster|dynamic_smem_size|total_smem_size|aggr_smem_size|reserved_smem_\w+|"
    r"current_graph_exec)\b"
)


class PtxLexer(RegexLexer):
    """PTX, the assembly language of NVIDIA's GPUs."""

    name = "PTX of ptxlab"
    url = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
    aliases = ("ptxlab",)
    filenames = ("*.ptx",)
    mimetypes = ("text/x-ptx",)

    tokens = {  # noqa: RUF012
        "root": [
            (r"\s+", Whitespace),
            (r"//.*?$", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r"/\*", Comment.Multiline),
            (r'"[^"\n]*"', String),
            (r"[A-Za-z_$%][\w$]*(?=\s*:(?!:))", Name.Label),
            (r"(\.(?:entry|func))(\s+)([A-Za-z_$%][\w$]*)", bygroups(Keyword, Whitespace, Name.Function)),
            (rf"\.(?:{_DIRECTIVES})\b(?!::)", Keyword.Declaration),
            (
                r"\.(?:[busf](?:8|16|32|64|128)|bf16|tf32|f16x2|bf16x2|pred|e[45]m[0-9]\w*|e[23]m[0-9]\w*)\b",
                Keyword.Type,
            ),
            (r"\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*", Name.Attribute),
            (r"0[fFdDxX][0-9a-fA-F]+U?\b", Number.Hex),
            (r"\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+", Number.Float),
            (r"\d+U?\b", Number.Integer),
            (_SPECIAL, Name.Builtin),
            (r"%[\w$]+", Name.Variable),
            (r"@!?", Operator.Word),
            (r"[a-z][a-z0-9_]*(?=\.[a-z_0-9])|\b(?:ret|exit|bra|call|trap|brkpt)\b", Name.Function.Magic),
            (r"[A-Za-z_$][\w$]*", Name),
            (r"[-+*/%<>=!&|^~?]", Operator),
            (r"[{}()\[\],;:.]", Punctuation),
            (r".", Generic),
        ],
    }


class PythonLexerOfPtx(PythonLexer):
    """Python in which strings of several lines with a kernel are PTX; `%r1` in a string is not a format."""

    name = "Python with PTX of ptxlab"
    aliases = ()
    filenames = ()
    mimetypes = ()

    def get_tokens_unprocessed(self, text: str, stack: Iterable[str] = ("root",)) -> Iterator[tuple[int, Any, str]]:
        """Tokens of Python, but for those strings."""
        string: list[tuple[int, Any, str]] = []
        for token in super().get_tokens_unprocessed(text, stack):
            if token[1] in String:
                string.append(token)
                continue
            yield from _string(string)
            string.clear()
            yield token
        yield from _string(string)


def _string(tokens: list[tuple[int, object, str]]) -> Iterator[tuple[int, Any, str]]:
    """The tokens of strings that follow each other, as PTX where they hold a kernel."""
    text = "".join(value for _, _, value in tokens)
    start, end = text.find("\n") + 1, text.rfind('"""')
    if start and ".target" in text and start < end:
        at = tokens[0][0]
        yield at, String.Double, text[:start]
        for offset, kind, value in PtxLexer().get_tokens_unprocessed(text[start:end]):
            yield at + start + offset, kind, value
        yield at + end, String.Double, text[end:]
        return
    for at, kind, value in tokens:
        yield at, String.Double if kind is String.Interpol and value.startswith("%") else kind, value


def setup(app: Any) -> dict[str, bool]:
    """Make the lexers those of `ptx` and of Python in Sphinx."""
    app.add_lexer("ptx", PtxLexer)
    for name in ("python", "py"):
        app.add_lexer(name, PythonLexerOfPtx)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
