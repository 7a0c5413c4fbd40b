"""The language server, by its protocol: what an editor sends and what it gets."""

import io
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from ptxlab.debug.protocol import read_message, write_message
from ptxlab.report import Diagnostic

pytest.importorskip("pygls", reason="the language server needs `pip install 'ptxlab[editor]'`")

from pygls.workspace import PositionCodec

from ptxlab.editor import answers, server
from ptxlab.editor.document import Document
from ptxlab.editor.findings import NotNeededError, findings_of

# pygls 2.1 asks `asyncio` what a coroutine is, which Python 3.14 would rather have asked of `inspect`.
pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning")

TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.const .f32 scale = 2.0;
.visible .entry saxpy(.param .u64 x, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [n];
    setp.ge.u32 %p, %r1, %r2;
    @%p bra done;
    ld.param.u64 %rd1, [x];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.f32 %f1, [%rd2];
    ld.const.f32 %f2, [scale];
    mul.f32 %f1, %f1, %f2;
    {
        .reg .b32 %r1;
        mov.b64 {%r1, %r2}, %rd1;
    }
    st.global.f32 [%rd2], %f1;
done:
    ret;
}
.visible .entry other() { .reg .b32 %r<2>; mov.u32 %r1, 0; done: ret; }
"""


class Editor:
    """An editor with the server in a thread; both end when their streams do."""

    def __init__(self, python: bool = False, **capabilities: Any) -> None:
        reading, to_server = os.pipe()
        from_server, writing = os.pipe()
        self.sending, self.receiving = os.fdopen(to_server, "wb"), os.fdopen(from_server, "rb")
        self.streams = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self.server = Thread(target=server.serve, args=self.streams)
        self.server.start()
        self.number = self.files = 0
        self.published: dict[str, list[list[dict[str, Any]]]] = defaultdict(list)
        given = {"processId": None, "rootUri": None, "initializationOptions": {"python": python}}
        self.request("initialize", {**given, "capabilities": capabilities})

    def notify(self, method: str, parameters: Any) -> None:
        write_message(self.sending, {"jsonrpc": "2.0", "method": method, "params": parameters})

    def request(self, method: str, parameters: Any = None) -> Any:
        """The result of a request; an error raises `LookupError`."""
        self.number += 1
        write_message(self.sending, {"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters})
        while (answer := self.receive()).get("id") != self.number:
            pass
        if "error" in answer:
            raise LookupError(answer["error"]["message"])
        return answer["result"]

    def receive(self) -> dict[str, Any]:
        """The next message; findings are kept by their file."""
        message = read_message(self.receiving)
        assert message is not None
        if message.get("method") == "textDocument/publishDiagnostics":
            self.published[message["params"]["uri"]].append(message["params"]["diagnostics"])
        return message

    def close(self) -> None:
        self.sending.close()
        self.server.join(30)
        for stream in (*self.streams, self.receiving):
            stream.close()


class Client:
    """One open file of an editor."""

    def __init__(self, editor: Editor, text: str = TEXT, path: Path | None = None) -> None:
        self.editor, self.text, self.version = editor, text, 1
        editor.files += 1
        self.uri = path.as_uri() if path else f"file:///k{editor.files}.ptx"
        opened = {"uri": self.uri, "languageId": "ptx", "version": 1, "text": text}
        editor.notify("textDocument/didOpen", {"textDocument": opened})

    def change(self, *changes: dict[str, Any]) -> None:
        """Send changes of the text."""
        self.version += 1
        about = {"uri": self.uri, "version": self.version}
        self.editor.notify("textDocument/didChange", {"textDocument": about, "contentChanges": changes})

    def ask(self, method: str, at: str = "", **more: Any) -> Any:
        """The answer to a request at a place, which `|` marks in a part of the text that occurs once."""
        before, _, after = at.partition("|")
        assert not at or self.text.count(before + after) == 1
        offset = self.text.index(before + after) + len(before) if at else 0
        line = self.text.count("\n", 0, offset)
        position = {"line": line, "character": offset - (self.text.rfind("\n", 0, offset) + 1)}
        parameters = {"textDocument": {"uri": self.uri}, "position": position, **more}
        return self.editor.request(f"textDocument/{method}", parameters)

    def renamed(self, at: str, new: str) -> str:
        """The text after a name was changed."""
        edits = self.ask("rename", at, newName=new)["changes"][self.uri]
        lines = self.text.splitlines(keepends=True)
        for edit in sorted(
            edits, key=lambda edit: (edit["range"]["start"]["line"], -edit["range"]["start"]["character"])
        ):
            start, end = edit["range"]["start"], edit["range"]["end"]
            line = lines[start["line"]]
            lines[start["line"]] = line[: start["character"]] + edit["newText"] + line[end["character"] :]
        return "".join(lines)

    def findings(self) -> list[dict[str, Any]]:
        """What is published next for this file."""
        published = self.editor.published[self.uri]
        while not published:
            self.editor.receive()
        return published.pop(0)


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_PAUSE", 0.02)
        editor = Editor()
        yield editor
        editor.close()


@pytest.fixture(scope="module")
def client(editor: Editor) -> Client:
    return Client(editor)


def test_findings_are_those_of_check_and_can_be_fixed(editor: Editor) -> None:
    assert Client(editor).findings() == []
    wrong = Client(editor, TEXT.replace("mul.f32", "mlu.f32").replace("ld.global", "ld.golbal"))
    found = wrong.findings()
    assert [(one["code"], one["severity"], one["range"]["start"]["line"]) for one in found] == [
        ("illegal-modifier", 1, 16),
        ("unknown-instruction", 1, 18),
    ]
    assert found[0]["message"].endswith("help: did you mean `.global`?")
    where = {"start": {"line": 16, "character": 8}, "end": {"line": 16, "character": 8}}
    (fix,) = wrong.ask("codeAction", range=where, context={"diagnostics": []})
    (edit,) = fix["edit"]["changes"][wrong.uri]
    assert (edit["newText"], edit["range"]["start"]) == (".global", {"line": 16, "character": 6})


def test_a_proof_on_demand(editor: Editor) -> None:
    pytest.importorskip("z3", reason="a proof needs `pip install 'ptxlab[prove]'`")
    client = Client(editor, TEXT.replace("%r1, %tid.x;", "%r1, %laneid;"))
    assert client.findings() == []
    where = {"start": {"line": 4, "character": 3}, "end": {"line": 4, "character": 3}}
    (action,) = client.ask("codeAction", range=where, context={"diagnostics": []})
    assert action["title"] == "Prove that `saxpy` has no data race"
    editor.request("workspace/executeCommand", {k: action["command"][k] for k in ("command", "arguments")})
    found = client.findings()
    assert {(one["code"], one["range"]["start"]["line"]) for one in found} == {("data-race", 23)}


def test_findings_follow_the_text(editor: Editor) -> None:
    client = Client(editor, TEXT.replace("ret;\n}", "ret\n}"))
    assert [one["code"] for one in client.findings()] == ["missing-semicolon"]
    client.change({"text": TEXT})
    assert client.findings() == []
    close = {"line": 10, "character": 19}
    client.change({"range": {"start": close, "end": close}, "text": "x"})  # `%tid.x` becomes `%txid.x`
    assert [(one["code"], one["range"]["start"]["line"]) for one in client.findings()] == [("unknown-name", 10)]
    editor.notify("textDocument/didClose", {"textDocument": {"uri": client.uri}})
    assert client.findings() == []
    with pytest.raises(LookupError, match="is not open"):
        client.ask("hover", "mad.wi|de")


def test_lines_end_where_editors_end_them(editor: Editor) -> None:
    client = Client(editor, TEXT.replace("done:\n", "// \f\n// \x1c\ndone:\n"))
    start = client.text[: client.text.index("    ret;")].count("\n")
    client.change(
        {"range": {"start": {"line": start, "character": 4}, "end": {"line": start, "character": 5}}, "text": "j"}
    )
    assert [(one["code"], one["range"]["start"]["line"]) for one in client.findings()] == [
        ("unknown-instruction", start)
    ]


def test_questions_do_not_wait_for_a_check(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the first text lasts until that has changed: its findings are not published."""
    started, released, ends = Event(), Event(), []

    def slow(document: Document, target: str | None, is_old: Event) -> list[Diagnostic]:
        started.set()
        released.wait(30)
        try:
            ends.append(findings := findings_of(document, target, is_old))
        except NotNeededError:
            ends.append(None)
            raise
        return findings

    monkeypatch.setattr(server, "findings_of", slow)
    client = Client(editor, TEXT.replace("mul.f32", "mlu.f32"))
    assert started.wait(30)
    assert client.ask("hover", "mad.wi|de")
    client.change({"text": TEXT})
    assert client.ask("hover", "mad.wi|de")
    released.set()
    assert (client.findings(), ends) == ([], [None, []])


def test_a_question_that_waits_can_be_taken_back(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    started, released, client = Event(), Event(), Client(editor)

    def slow(text: str) -> str:
        started.set()
        released.wait(30)
        return text

    monkeypatch.setattr(answers, "describe_opcode", slow)
    position = {"line": 12, "character": 6}
    asked = {"textDocument": {"uri": client.uri}, "position": position}
    for number in ("first", "second"):
        hover = {"jsonrpc": "2.0", "id": number, "method": "textDocument/hover", "params": asked}
        write_message(editor.sending, hover)
    assert started.wait(30)
    editor.notify("$/cancelRequest", {"id": "second"})
    while (answer := editor.receive()).get("id") is None:
        pass
    assert (answer["id"], answer["error"]["code"]) == ("second", -32800)
    released.set()
    while (answer := editor.receive()).get("id") is None:
        pass
    assert (answer["id"], answer["result"]["contents"]["value"]) == ("first", "setp.ge.u32")


def test_hover(client: Client) -> None:
    shown = {at: client.ask("hover", at)["contents"]["value"] for at in ("mad.wi|de", "%ti|d", "[sca|le]", "bra do|ne")}
    assert "mad.wide.type d, a, b, c;  // since PTX" in shown["mad.wi|de"]
    assert shown["%ti|d"].endswith("position of the thread in its block")
    assert shown["[sca|le]"] == "```ptx\n.const .f32 scale\n```\nvariable"
    assert shown["bra do|ne"] == "```ptx\ndone:\n```\nlabel"
    assert client.ask("hover", "%r1, |4,") is None


@pytest.mark.parametrize(
    ("at", "line", "column"),
    [
        ("mad.wide.u32 %rd2, %r|1", 7, 14),  # `%r<5>`
        ("mov.b64 {%r|1", 20, 18),  # the register of the inner block
        ("mov.b64 {%r1, %r|2", 7, 14),
        ("bra do|ne", 24, 0),
        ("[|n]", 4, 49),
        ("|scale]", 3, 12),
        ("other() { .reg .b32 %r<2>; mov.u32 |%r1", 27, 36),
    ],
)
def test_definition(client: Client, at: str, line: int, column: int) -> None:
    assert client.ask("definition", at)["range"]["start"] == {"line": line, "character": column}


def test_references_are_those_of_the_function(client: Client) -> None:
    lines = [
        one["range"]["start"]["line"]
        for one in client.ask("references", "bra do|ne", context={"includeDeclaration": True})
    ]
    assert lines == [13, 24]
    lines = [
        one["range"]["start"]["line"]
        for one in client.ask("references", "mov.b64 {%r|1", context={"includeDeclaration": False})
    ]
    assert lines == [21]


def test_rename(client: Client) -> None:
    renamed = client.renamed("bra do|ne", "end")
    assert renamed == TEXT.replace("bra done", "bra end").replace("done:\n", "end:\n")
    renamed = client.renamed("st.global.f32 [%r|d2]", "%address")
    assert renamed == TEXT.replace("%rd", "%address")
    renamed = client.renamed("{ .reg .b32 |%r<2>", "%i")
    assert renamed == TEXT.replace("{ .reg .b32 %r<2>; mov.u32 %r1", "{ .reg .b32 %i<2>; mov.u32 %i1")


@pytest.mark.parametrize(
    ("at", "new", "message"),
    [
        ("[|n]", "x", "`x` is declared already: `.param .u64 x`"),
        ("[|n]", "1n", "`1n` is not a name of PTX"),
        ("st.global.f32 [%r|d2]", "%a1", "`%rd<3>` are registers with numbers: name them `%x`"),
        ("mov.u32 |%r1, %tid.x", "%f", "`%f` is declared already: `.reg .f32 %f<3>`"),
        ("|%tid", "%t", "there is no name here that the file declares"),
    ],
)
def test_names_that_cannot_be(client: Client, at: str, new: str, message: str) -> None:
    with pytest.raises(LookupError, match=message.replace("[", r"\[")):
        client.ask("rename", at, newName=new)


def test_completion(editor: Editor) -> None:
    client = Client(
        editor, TEXT.replace("    ret;\n}\n.v", "    ld.global.\n    mul.f32 %f1, %\n    se\n    ret;\n}\n.v")
    )
    labels = [one["label"] for one in client.ask("completion", "ld.global.|\n")]
    assert {"f32", "v4", "nc"} <= set(labels)
    labels = [one["label"] for one in client.ask("completion", "%f1, %|\n")]
    assert {"%f2", "%rd0", "%tid", "scale"} <= set(labels)
    labels = [one["label"] for one in client.ask("completion", "se|\n")]
    assert {"selp", "setp"} <= set(labels)


def test_symbols_and_formatting(editor: Editor, client: Client) -> None:
    assert [one["name"] for one in client.ask("documentSymbol")] == [
        "scale", "saxpy", "other", "x", "n", "done", "done",
    ]  # fmt: skip
    options = {"tabSize": 4, "insertSpaces": True}
    (edit,) = client.ask("formatting", options=options)
    assert edit["newText"].startswith(".version 8.0\n.target sm_80\n")
    with pytest.raises(LookupError, match="the file cannot be read: expected `;`"):
        Client(editor, TEXT.replace("ret;\n}", "ret\n}")).ask("formatting", options=options)


def test_positions_count_the_units_that_the_editor_prefers() -> None:
    editor = Editor(general={"positionEncodings": ["utf-8", "utf-16"]})
    client = Client(editor, TEXT.replace("bra done", "/* \U0001d49c */ bra done"))
    assert [one["range"]["start"]["character"] for one in client.findings()] == [11]
    shown = client.ask("hover", position={"line": 13, "character": 20})  # `bra`
    assert shown["range"] == {"start": {"line": 13, "character": 19}, "end": {"line": 13, "character": 22}}
    editor.close()


def test_positions_count_units_of_utf16(editor: Editor) -> None:
    client = Client(editor, "// \U0001d49c\n.version 8.0\n.target sm_80\n")
    assert client.findings()[0]["range"] == {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 5}}


@pytest.mark.parametrize(
    "text", ["", "}", "{{{", ".reg", ".entry", ".func (", ".reg .b32 %r<", "@", "a:", "\x00", "/* "]
)
def test_any_text_is_answered(editor: Editor, text: str) -> None:
    client = Client(editor, text)
    assert isinstance(client.findings(), list)
    for method in ("hover", "definition", "references", "completion", "documentSymbol", "prepareRename"):
        client.ask(method, **({"context": {"includeDeclaration": True}} if method == "references" else {}))


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("hover", {"position": {"line": -1, "character": 0}}),
        ("hover", {"position": {"line": 1 << 40, "character": 0}}),
        ("hover", {"position": None}),
        ("formatting", {"options": {}}),
    ],
)
def test_what_is_not_of_the_protocol_is_answered_by_an_error(
    editor: Editor, client: Client, method: str, parameters: dict[str, Any]
) -> None:
    with pytest.raises(LookupError, match=r"Invalid Params|Internal Error"):
        editor.request(f"textDocument/{method}", {"textDocument": {"uri": client.uri}, **parameters})
    assert client.ask("hover", "mul|.f32") is not None


def test_the_command() -> None:
    stream = io.BytesIO()
    opened = {"textDocument": {"uri": "file:///k.ptx", "languageId": "ptx", "version": 1, "text": "hello"}}
    capabilities = {"textDocument": {"rename": {"prepareSupport": True}}}
    for message in (
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": capabilities}},
        {"method": "textDocument/didOpen", "params": opened},
        {"id": 2, "method": "workspace/nothing", "params": None},
        {"id": 3, "method": "shutdown", "params": None},
        {"method": "exit", "params": None},
    ):
        write_message(stream, {"jsonrpc": "2.0", **message})
    done = subprocess.run(
        [sys.executable, "-m", "ptxlab", "lsp", "--stdio"], input=stream.getvalue(), capture_output=True, timeout=60
    )
    answers = io.BytesIO(done.stdout)
    first, second, third = (read_message(answers) for _ in range(3))
    assert first is not None
    assert first["result"]["capabilities"]["renameProvider"] == {"prepareProvider": True}
    assert second is not None
    assert second["error"]["message"] == "Method Not Found: workspace/nothing"
    assert (third, done.returncode, done.stderr) == ({"jsonrpc": "2.0", "id": 3, "result": None}, 0, b"")


def test_what_the_project_ignores_is_not_shown(tmp_path: Path) -> None:
    text = ".version 8.0\n.target sm_80\n.entry k()\n{\n    ret;\n    bar.sync 0;\n}\n"
    document = Document((tmp_path / "a b.ptx").as_uri(), text, PositionCodec())
    assert [one.code for one in findings_of(document, None, Event())] == ["unreachable-code"]
    table = tmp_path / "pyproject.toml"
    table.write_text('[tool.ptxlab]\nignore = ["unreachable-code"]\n')
    assert findings_of(document, None, Event()) == []
    table.write_text("[tool.ptxlab]\nignroe = []\n")
    assert len(findings_of(document, None, Event())) == 1
