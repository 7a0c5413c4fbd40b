"""A lexer of PTX for Pygments, and so for Sphinx, MkDocs, Jupyter and other programs that highlight by it.

Pygments has a lexer of this name, which stops at guards, `::` and pairs of predicates. Its own languages come first, so
that ours is called `ptxlab` where ptxlab is installed; in Sphinx, `extensions = ["ptxlab.highlighting"]` makes it the
lexer of `ptx`. It colors by form alone, so that a part of a file, or what a later PTX has, is colored too.
"""

from typing import Any

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["PtxLexer", "setup"]

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


def setup(app: Any) -> dict[str, bool]:
    """Make the lexer that of `ptx` in Sphinx."""
    app.add_lexer("ptx", PtxLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
