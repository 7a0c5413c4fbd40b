"""The language server: pygls has the protocol, and `Server` the open texts and what was found in them.

A text is checked by another thread when it has not changed for a moment, and what is found is published unless it has
changed since. A third thread answers the editor's questions meanwhile, so that one it no longer asks is taken back.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, BinaryIO
from urllib.parse import unquote

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from ptxlab import __version__
from ptxlab.editor.answers import ANSWERS, refuse
from ptxlab.editor.document import Document
from ptxlab.editor.findings import as_message, findings_of, fixes_of
from ptxlab.editor.proofs import PROVE, proofs_of, proved
from ptxlab.editor.python_kernels import findings_of_python, is_saved
from ptxlab.isa.targets import TARGETS
from ptxlab.report import Diagnostic

_PAUSE = 0.2  # seconds without a change before a text is checked
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class _Text(TextDocument):
    """A text whose lines end as the protocol ends them; for pygls a form feed ends one, too."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(_LINE.findall(self.source))


class _Protocol(LanguageServerProtocol):
    """The protocol, where a request that is not as it says is answered, too: by an error."""

    def structure_message(self, data: dict[str, object]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as wrong:
            if isinstance(data.get("id"), int | str) and isinstance(data.get("method"), str):
                self._send_response(data["id"], error=wrong.to_response_error())
            raise


class Server:
    """The open texts, and what was found in each."""

    def __init__(self, target: str | None = None, executes: bool = False) -> None:
        self.target, self.executes = target, executes
        self.documents: dict[str, Document] = {}
        self.found: dict[str, list[Diagnostic]] = {}
        self.checks: dict[str, asyncio.Task[None]] = {}
        self.checker, self.answerer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self.protocol = LanguageServer("ptxlab", __version__, protocol_cls=_Protocol)
        self._register()

    def _register(self) -> None:
        feature = self.protocol.feature

        @feature(types.INITIALIZE)
        def initialize(asked: types.InitializeParams) -> None:
            options = asked.initialization_options
            target = options.get("target") if isinstance(options, dict) else None
            if target is not None and (not isinstance(target, str) or target not in TARGETS):
                raise refuse(f"there is no target {target!r}")
            self.target = target or self.target
            self.executes = self.executes or (isinstance(options, dict) and options.get("python") is True)

        @feature(types.TEXT_DOCUMENT_DID_OPEN)
        def opened(asked: types.DidOpenTextDocumentParams) -> None:
            given, workspace = asked.text_document, self.protocol.workspace
            text = _Text(given.uri, given.text, given.version, position_codec=workspace.position_codec)
            workspace.text_documents[unquote(given.uri)] = text
            self._follow(given.uri)

        @feature(types.TEXT_DOCUMENT_DID_CHANGE)
        def changed(asked: types.DidChangeTextDocumentParams) -> None:
            self._follow(asked.text_document.uri)

        @feature(types.TEXT_DOCUMENT_DID_SAVE)
        def saved(asked: types.DidSaveTextDocumentParams) -> None:
            if self._document(asked).language != "ptx":  # which does not depend on what is saved
                self._follow(asked.text_document.uri)

        @feature(types.TEXT_DOCUMENT_DID_CLOSE)
        def closed(asked: types.DidCloseTextDocumentParams) -> None:
            uri = asked.text_document.uri
            self._forget(uri)
            self._publish(uri, [])

        @feature(
            types.TEXT_DOCUMENT_CODE_ACTION,
            types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.Empty]),
        )
        async def fix(asked: types.CodeActionParams) -> list[types.CodeAction]:
            return [*await self._fixes(asked), *proofs_of(self._document(asked), asked.range)]

        @self.protocol.command(PROVE)
        async def prove(uri: str, kernel: str) -> None:
            await self._prove(uri, kernel)

        for method, (answer, options) in ANSWERS.items():
            feature(method, options)(self._answering(answer))

    def _answering(self, answer: Callable[[Document, object], object]) -> Callable[[Any], Any]:
        async def reply(asked: Any) -> Any:  # pygls would hand the server to a function that takes an `object`
            document = self._document(asked)
            if document.language != "ptx":
                return None
            return await asyncio.get_running_loop().run_in_executor(self.answerer, answer, document, asked)

        return reply

    def _document(self, asked: Any) -> Document:
        uri = asked.text_document.uri
        if uri not in self.documents:
            raise refuse(f"`{uri}` is not open")
        return self.documents[uri]

    def _follow(self, uri: str) -> None:
        """Take a new text, and check it after a moment."""
        self._forget(uri)
        workspace = self.protocol.workspace
        document = Document(uri, workspace.get_text_document(uri).source, workspace.position_codec)
        self.documents[uri] = document
        self.checks[uri] = asyncio.get_running_loop().create_task(self._check(document))

    def _forget(self, uri: str) -> None:
        self.documents.pop(uri, None)
        self.found.pop(uri, None)
        if check := self.checks.pop(uri, None):
            check.cancel()

    async def _check(self, document: Document) -> None:
        """Publish what is wrong with a text; cancelled when it changes."""
        await asyncio.sleep(_PAUSE)
        is_python = document.language == "python"
        if is_python and not (self.executes and is_saved(document)):
            return  # what was found in the saved text stays
        is_old, find = Event(), findings_of_python if is_python else findings_of
        try:
            found = await asyncio.get_running_loop().run_in_executor(self.checker, find, document, self.target, is_old)
        finally:
            is_old.set()
        self.found[document.uri] = found
        self._publish(document.uri, [as_message(document, one) for one in found])

    def _publish(self, uri: str, shown: list[types.Diagnostic]) -> None:
        self.protocol.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown))

    async def _fixes(self, asked: types.CodeActionParams) -> list[types.CodeAction]:
        """The quick fixes for a stretch of a text, as soon as that is checked."""
        document = self._document(asked)
        await asyncio.wait([self.checks[document.uri]])
        if self.documents.get(document.uri) is not document:
            return []  # it has changed
        start, end = document.offset(asked.range.start), document.offset(asked.range.end)
        there = [
            found
            for found in self.found.get(document.uri, [])
            if found.labels and found.labels[0].span.start <= end and start <= found.labels[0].span.end
        ]
        return [fix for found in there for fix in fixes_of(document, found)]

    async def _prove(self, uri: str, kernel: str) -> None:
        """Publish what is in the way of a proof beside what is wrong with a text; say the answer in a message."""
        document = self.documents.get(uri)
        if document is None:
            raise refuse(f"`{uri}` is not open")
        answer, found = await asyncio.get_running_loop().run_in_executor(self.checker, proved, document, kernel)
        if self.documents.get(uri) is not document:
            return  # it has changed
        shown = [*self.found.get(uri, []), *found]
        self._publish(uri, [as_message(document, one) for one in shown])
        level = types.MessageType.Warning if found else types.MessageType.Info
        self.protocol.window_show_message(types.ShowMessageParams(type=level, message=answer))


def serve(reading: BinaryIO, writing: BinaryIO, target: str | None = None, executes: bool = False) -> None:
    """Answer requests until the editor ends the session or its stream does."""
    # What is refused is said to the editor; a log of it would be lines on standard error.
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    Server(target, executes).protocol.start_io(reading, writing)
