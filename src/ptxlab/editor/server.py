"""The language server: requests of an editor, answered one after the other.

Messages are read by a thread of their own, and findings are published when none waits: someone who types fast is not
held up by the check of a text that is already old.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import Any, BinaryIO

from ptxlab import __version__
from ptxlab.debug.protocol import ProtocolError, read_message, write_message
from ptxlab.editor.document import Document, Word
from ptxlab.editor.findings import as_message, findings_of, fixes_of
from ptxlab.editor.instructions import continuations, describe_opcode, describe_special, opcode_at
from ptxlab.editor.names import Declaration, references, scopes_of
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import heads
from ptxlab.isa.targets import TARGETS
from ptxlab.report import Diagnostic, PtxError
from ptxlab.syntax import format as format_module
from ptxlab.syntax import parse

Answer = Any
_NAME = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+")
_PAUSE = 0.2  # seconds without a message before a changed text is checked
_METHOD_NOT_FOUND, _INVALID, _FAILED = -32601, -32602, -32803
_NUMBERED = 64  # registers of `%r<6>` that are proposed at most
_SYMBOLS = {"function": 12, "label": 20, "variable": 13, "register": 13, "parameter": 13}
_ITEMS = {"function": 3, "label": 18, "variable": 6, "register": 6, "parameter": 6}
CAPABILITIES = {
    "textDocumentSync": {"openClose": True, "change": 1, "save": False},
    "hoverProvider": True,
    "completionProvider": {"triggerCharacters": [".", "%", "["]},
    "definitionProvider": True,
    "referencesProvider": True,
    "documentHighlightProvider": True,
    "renameProvider": {"prepareProvider": True},
    "documentSymbolProvider": True,
    "documentFormattingProvider": True,
    "codeActionProvider": {"codeActionKinds": ["quickfix"]},
}


class RequestError(Exception):
    """A request that cannot be answered; the editor shows the text."""


class Server:
    """The open texts, and an answer for each method of the protocol."""

    def __init__(self, send: Callable[[dict[str, Any]], None], target: str | None = None) -> None:
        self.send, self.target = send, target
        self.documents: dict[str, Document] = {}
        self.found: dict[str, list[Diagnostic]] = {}
        self.changed: set[str] = set()
        self.is_ended = False

    def handle(self, message: dict[str, Any]) -> None:
        """Answer a request, or take note of a notification."""
        method, parameters = str(message.get("method", "")), message.get("params") or {}
        answer = getattr(self, "on_" + re.sub(r"\W", "_", method), None)
        if "id" not in message:
            if answer is not None:
                answer(parameters)
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if answer is None:
            reply["error"] = {"code": _METHOD_NOT_FOUND, "message": f"`{method}` is not answered"}
        else:
            try:
                reply["result"] = answer(parameters)
            except RequestError as wrong:
                reply["error"] = {"code": _FAILED, "message": str(wrong)}
            except (KeyError, TypeError, ValueError) as wrong:
                reply["error"] = {"code": _INVALID, "message": f"`{method}`: {wrong}"}
        self.send(reply)

    def publish(self) -> None:
        """Check the texts that have changed, and send what is found."""
        for uri in sorted(self.changed):
            document = self.documents[uri]
            self.found[uri] = findings_of(document, self.target)
            shown = [as_message(document, found) for found in self.found[uri]]
            self._notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": shown})
        self.changed.clear()

    def _notify(self, method: str, parameters: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": parameters})

    # Start and end.

    def on_initialize(self, parameters: dict[str, Any]) -> Answer:
        target = (parameters.get("initializationOptions") or {}).get("target")
        if target is not None and target not in TARGETS:
            raise RequestError(f"there is no target {target!r}")
        self.target = target or self.target
        return {"capabilities": CAPABILITIES, "serverInfo": {"name": "ptxlab", "version": __version__}}

    def on_shutdown(self, parameters: dict[str, Any]) -> Answer:
        return None

    def on_exit(self, parameters: dict[str, Any]) -> None:
        self.is_ended = True

    # Texts.

    def on_textDocument_didOpen(self, parameters: dict[str, Any]) -> None:  # noqa: N802 - the protocol's names
        self._set(parameters["textDocument"]["uri"], parameters["textDocument"]["text"])

    def on_textDocument_didChange(self, parameters: dict[str, Any]) -> None:  # noqa: N802
        self._set(parameters["textDocument"]["uri"], parameters["contentChanges"][-1]["text"])

    def on_textDocument_didClose(self, parameters: dict[str, Any]) -> None:  # noqa: N802
        uri = parameters["textDocument"]["uri"]
        self.documents.pop(uri, None)
        self.changed.discard(uri)
        self._notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": []})

    def _set(self, uri: str, text: str) -> None:
        self.documents[uri] = Document(uri, text)
        self.changed.add(uri)

    # What is at a position.

    def on_textDocument_hover(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document, number = self._at(parameters)
        if number is None:
            return None
        word, text = document.words[number], None
        if extent := opcode_at(document, number):
            start, end = document.words[extent[0]].start, document.words[extent[1]].end
            text = describe_opcode(document.text[start:end])
        elif declaration := self._declaration(document, word):
            start, end = word.start, word.end
            text = f"```ptx\n{declaration.text}\n```\n{declaration.kind}"
        else:
            start, end, text = word.start, word.end, describe_special(word.text)
        if text is None:
            return None
        return {"contents": {"kind": "markdown", "value": text}, "range": document.range(start, end)}

    def on_textDocument_definition(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document, declaration = self._named(parameters)
        return _location(document, declaration.word) if declaration else None

    def on_textDocument_references(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document, declaration = self._named(parameters)
        with_own = (parameters.get("context") or {}).get("includeDeclaration", True)
        if declaration is None:
            return []
        words = references(document, declaration)
        return [_location(document, word) for word in words if with_own or word is not declaration.word]

    def on_textDocument_documentHighlight(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document, declaration = self._named(parameters)
        words = references(document, declaration) if declaration else []
        return [{"range": document.range(word.start, word.end)} for word in words]

    def on_textDocument_prepareRename(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document, number = self._at(parameters)
        word = document.words[number] if number is not None else None
        declaration = self._declaration(document, word) if word else None
        if word is None or declaration is None:
            return None
        return {"range": document.range(word.start, word.end), "placeholder": declaration.name}

    def on_textDocument_rename(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document, declaration = self._named(parameters)
        if declaration is None:
            raise RequestError("there is no name here that the file declares")
        new = str(parameters["newName"])
        if not _NAME.fullmatch(new):
            raise RequestError(f"`{new}` is not a name of PTX")
        if declaration.count is not None and new[-1].isdigit():
            raise RequestError(f"`{declaration.name}<{declaration.count}>` are registers with numbers: name them `%x`")
        words = references(document, declaration)
        for word in words:
            other = scopes_of(document).at(word.start).find(new + word.text.removeprefix(declaration.name))
            if other is not None and other is not declaration:
                raise RequestError(f"`{new}` is declared already: `{other.text}`")
        length = len(declaration.name)
        edits = [{"range": document.range(word.start, word.start + length), "newText": new} for word in words]
        return {"changes": {document.uri: edits}}

    def on_textDocument_completion(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document = self._document(parameters)
        offset = document.offset(parameters["position"])
        before = document.last_before(offset)
        line = document.text[document.text.rfind("\n", 0, offset) + 1 : offset]
        written = re.search(r"(?:^|[;{}:\s])([a-z]\w*(?:\.[\w:]+)*)\.[\w:]*$", line)
        if written and written[1].partition(".")[0] in heads():
            return [{"label": word, "kind": 14} for word in continuations(written[1])]
        number = document.word_at(offset) if before >= 0 else None
        is_start = number is None or (opcode_at(document, number) is not None)
        if is_start or re.fullmatch(r"\s*(@!?%?\w+\s+)?\w*", line):
            return [{"label": head, "kind": 3} for head in sorted(heads())]
        names = [item for one in scopes_of(document).at(offset).visible() for item in _items(one)]
        special = [{"label": name, "kind": 21, "detail": one.text} for name, one in SPECIAL_REGISTERS.items()]
        return [*names, *special]

    # The whole text.

    def on_textDocument_documentSymbol(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document = self._document(parameters)
        module = scopes_of(document)
        return [
            {
                "name": one.name,
                "detail": one.text,
                "kind": _SYMBOLS[one.kind],
                "range": document.range(one.word.start, one.word.end),
                "selectionRange": document.range(one.word.start, one.word.end),
            }
            for scope in (module, *module.inner)
            for one in scope.names.values()
            if one.kind != "register"
        ]

    def on_textDocument_formatting(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document = self._document(parameters)
        try:
            text = format_module(parse(document.text, document.source.name))
        except PtxError as wrong:
            raise RequestError(f"the file cannot be read: {wrong.diagnostics[0].message}") from None
        return [{"range": document.range(0, len(document.text)), "newText": text}] if text != document.text else []

    def on_textDocument_codeAction(self, parameters: dict[str, Any]) -> Answer:  # noqa: N802
        document = self._document(parameters)
        if document.uri in self.changed:
            self.publish()
        start, end = (document.offset(parameters["range"][side]) for side in ("start", "end"))
        there = [
            found
            for found in self.found.get(document.uri, [])
            if found.labels and found.labels[0].span.start <= end and start <= found.labels[0].span.end
        ]
        return [fix for found in there for fix in fixes_of(document, found)]

    def _document(self, parameters: dict[str, Any]) -> Document:
        uri = parameters["textDocument"]["uri"]
        if uri not in self.documents:
            raise RequestError(f"`{uri}` is not open")
        return self.documents[uri]

    def _at(self, parameters: dict[str, Any]) -> tuple[Document, int | None]:
        document = self._document(parameters)
        return document, document.word_at(document.offset(parameters["position"]))

    def _named(self, parameters: dict[str, Any]) -> tuple[Document, Declaration | None]:
        document, number = self._at(parameters)
        return document, self._declaration(document, document.words[number]) if number is not None else None

    def _declaration(self, document: Document, word: Word) -> Declaration | None:
        if word.kind != "name":
            return None
        scope = scopes_of(document).at(word.start)
        own = [one for one in scope.visible() if one.word is word]
        return own[0] if own else scope.find(word.text)


def _location(document: Document, word: Word) -> dict[str, Any]:
    return {"uri": document.uri, "range": document.range(word.start, word.end)}


def _items(one: Declaration) -> list[dict[str, Any]]:
    names = [one.name] if one.count is None else [f"{one.name}{at}" for at in range(min(one.count, _NUMBERED))]
    return [{"label": name, "kind": _ITEMS[one.kind], "detail": one.text} for name in names]


def serve(reading: BinaryIO, writing: BinaryIO, target: str | None = None) -> None:
    """Answer requests until the editor ends the session or its stream does."""
    server = Server(lambda message: write_message(writing, message), target)
    waiting: Queue[dict[str, Any] | None] = Queue()
    Thread(target=_read, args=(reading, waiting), daemon=True).start()
    while not server.is_ended:
        try:
            message = waiting.get(timeout=_PAUSE) if server.changed else waiting.get()
        except Empty:
            server.publish()
            continue
        if message is None:
            return
        server.handle(message)


def _read(stream: BinaryIO, waiting: Queue[dict[str, Any] | None]) -> None:
    try:
        while (message := read_message(stream)) is not None:
            waiting.put(message)
            if message.get("method") == "exit":
                return
    except ProtocolError:
        pass
    waiting.put(None)
