"""The answers to an editor's questions about a text: each is a function of the text and what was asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ptxlab.editor.document import Document, Word
from ptxlab.editor.instructions import continuations, describe_opcode, describe_special, opcode_at
from ptxlab.editor.names import DeclaredName, references, scopes_of
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import heads
from ptxlab.report import PtxError
from ptxlab.syntax import format as format_module
from ptxlab.syntax import parse

_NAME = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+")
_NUMBERED = 64  # registers of `%r<6>` that are proposed at most
_SYMBOLS = {
    "function": types.SymbolKind.Function,
    "label": types.SymbolKind.Key,
    "variable": types.SymbolKind.Variable,
    "register": types.SymbolKind.Variable,
    "parameter": types.SymbolKind.Variable,
}
_ITEMS = {
    "function": types.CompletionItemKind.Function,
    "label": types.CompletionItemKind.Reference,
    "variable": types.CompletionItemKind.Variable,
    "register": types.CompletionItemKind.Variable,
    "parameter": types.CompletionItemKind.Variable,
}


def refuse(text: str) -> JsonRpcException:
    """An error for a request that cannot be answered; the editor shows the text."""
    return JsonRpcException(text, types.LSPErrorCodes.RequestFailed)


# What is at a position.


def hover(document: Document, asked: types.HoverParams) -> types.Hover | None:
    number = _word_at(document, asked.position)
    if number is None:
        return None
    word, text = document.words[number], None
    start, end = word.start, word.end
    if extent := opcode_at(document, number):
        start, end = document.words[extent[0]].start, document.words[extent[1]].end
        text = describe_opcode(document.text[start:end])
    elif declaration := _declaration(document, word):
        text = f"```ptx\n{declaration.text}\n```\n{declaration.kind}"
    else:
        text = describe_special(word.text)
    if text is None:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), document.range(start, end))


def definition(document: Document, asked: types.DefinitionParams) -> types.Location | None:
    declaration = _named(document, asked.position)
    return _location(document, declaration.word) if declaration else None


def uses(document: Document, asked: types.ReferenceParams) -> list[types.Location]:
    declaration = _named(document, asked.position)
    if declaration is None:
        return []
    with_own, words = asked.context.include_declaration, references(document, declaration)
    return [_location(document, word) for word in words if with_own or word != declaration.word]


def highlight(document: Document, asked: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
    declaration = _named(document, asked.position)
    words = references(document, declaration) if declaration else []
    return [types.DocumentHighlight(document.range(word.start, word.end)) for word in words]


def prepare_rename(document: Document, asked: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
    number = _word_at(document, asked.position)
    word = document.words[number] if number is not None else None
    declaration = _declaration(document, word) if word else None
    if word is None or declaration is None:
        return None
    return types.PrepareRenamePlaceholder(document.range(word.start, word.end), declaration.name)


def rename(document: Document, asked: types.RenameParams) -> types.WorkspaceEdit:
    declaration, new = _named(document, asked.position), asked.new_name
    if declaration is None:
        raise refuse("there is no name here that the file declares")
    if not _NAME.fullmatch(new):
        raise refuse(f"`{new}` is not a name of PTX")
    if declaration.count is not None and new[-1].isdigit():
        raise refuse(f"`{declaration.name}<{declaration.count}>` are registers with numbers: name them `%x`")
    words = references(document, declaration)
    for word in words:
        other = scopes_of(document).at(word.start).find(new + word.text.removeprefix(declaration.name))
        if other is not None and other is not declaration:
            raise refuse(f"`{new}` is declared already: `{other.text}`")
    length = len(declaration.name)
    edits = [types.TextEdit(document.range(word.start, word.start + length), new) for word in words]
    return types.WorkspaceEdit(changes={document.uri: edits})


def completion(document: Document, asked: types.CompletionParams) -> list[types.CompletionItem]:
    offset = document.offset(asked.position)
    line = document.text[document.text.rfind("\n", 0, offset) + 1 : offset]
    written = re.search(r"(?:^|[;{}:\s])([a-z]\w*(?:\.[\w:]+)*)\.[\w:]*$", line)
    if written and written[1].partition(".")[0] in heads():
        return [types.CompletionItem(word, kind=types.CompletionItemKind.Keyword) for word in continuations(written[1])]
    if re.fullmatch(r"\s*(@!?%?\w+\s+)?\w*", line) or _is_opcode(document, offset):
        return [types.CompletionItem(head, kind=types.CompletionItemKind.Function) for head in sorted(heads())]
    names = [item for one in scopes_of(document).at(offset).visible() for item in _items(one)]
    special = [
        types.CompletionItem(name, kind=types.CompletionItemKind.Constant, detail=one.text)
        for name, one in SPECIAL_REGISTERS.items()
    ]
    return [*names, *special]


# The whole text.


def outline(document: Document, asked: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    module = scopes_of(document)
    return [
        types.DocumentSymbol(
            name=one.name,
            detail=one.text,
            kind=_SYMBOLS[one.kind],
            range=document.range(one.word.start, one.word.end),
            selection_range=document.range(one.word.start, one.word.end),
        )
        for scope in (module, *module.inner)
        for one in scope.names.values()
        if one.kind != "register"
    ]


def formatting(document: Document, asked: types.DocumentFormattingParams) -> list[types.TextEdit]:
    try:
        text = format_module(parse(document.text, document.source.name))
    except PtxError as wrong:
        raise refuse(f"the file cannot be read: {wrong.diagnostics[0].message}") from None
    return [types.TextEdit(document.range(0, len(document.text)), text)] if text != document.text else []


ANSWERS: dict[str, tuple[Callable[[Document, Any], Any], Any]] = {
    types.TEXT_DOCUMENT_HOVER: (hover, None),
    types.TEXT_DOCUMENT_COMPLETION: (completion, types.CompletionOptions(trigger_characters=[".", "%", "["])),
    types.TEXT_DOCUMENT_DEFINITION: (definition, None),
    types.TEXT_DOCUMENT_REFERENCES: (uses, None),
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: (highlight, None),
    types.TEXT_DOCUMENT_PREPARE_RENAME: (prepare_rename, None),
    types.TEXT_DOCUMENT_RENAME: (rename, types.RenameOptions(prepare_provider=True)),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (outline, None),
    types.TEXT_DOCUMENT_FORMATTING: (formatting, None),
}
"""Each question with its answer, and the options that the server announces."""


def _word_at(document: Document, position: types.Position) -> int | None:
    return document.word_at(document.offset(position))


def _is_opcode(document: Document, offset: int) -> bool:
    """Whether an offset is in an opcode, or before all words."""
    number = document.word_at(offset) if document.last_before(offset) >= 0 else None
    return number is None or opcode_at(document, number) is not None


def _named(document: Document, position: types.Position) -> DeclaredName | None:
    number = _word_at(document, position)
    return _declaration(document, document.words[number]) if number is not None else None


def _declaration(document: Document, word: Word) -> DeclaredName | None:
    if word.kind != "name":
        return None
    scope = scopes_of(document).at(word.start)
    own = [one for one in scope.visible() if one.word == word]
    return own[0] if own else scope.find(word.text)


def _location(document: Document, word: Word) -> types.Location:
    return types.Location(document.uri, document.range(word.start, word.end))


def _items(one: DeclaredName) -> list[types.CompletionItem]:
    names = [one.name] if one.count is None else [f"{one.name}{at}" for at in range(min(one.count, _NUMBERED))]
    return [types.CompletionItem(name, kind=_ITEMS[one.kind], detail=one.text) for name in names]
