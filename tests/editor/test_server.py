"""The language server, by its protocol: what an editor sends and what it gets."""

import io
import subprocess
import sys
from typing import Any

import pytest

from ptxlab.debug.protocol import read_message, write_message
from ptxlab.editor.server import Server

URI = "file:///k.ptx"
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


class Client:
    """An editor with one open file."""

    def __init__(self, text: str = TEXT) -> None:
        self.got: list[dict[str, Any]] = []
        self.text = text
        self.server = Server(self.got.append)
        self.server.handle({"id": 0, "method": "initialize", "params": {}})
        opened = {"textDocument": {"uri": URI, "languageId": "ptx", "version": 1, "text": text}}
        self.server.handle({"method": "textDocument/didOpen", "params": opened})

    def ask(self, method: str, at: str = "", **more: Any) -> Any:
        """The answer to a request at a place, which `|` marks in a part of the text that occurs once."""
        before, _, after = at.partition("|")
        assert not at or self.text.count(before + after) == 1
        offset = self.text.index(before + after) + len(before) if at else 0
        line = self.text.count("\n", 0, offset)
        position = {"line": line, "character": offset - (self.text.rfind("\n", 0, offset) + 1)}
        parameters = {"textDocument": {"uri": URI}, "position": position, **more}
        self.server.handle({"id": 1, "method": f"textDocument/{method}", "params": parameters})
        answer = self.got[-1]
        if "error" in answer:
            raise LookupError(answer["error"]["message"])
        return answer["result"]

    def renamed(self, at: str, new: str) -> str:
        """The text after a name was changed."""
        edits = self.ask("rename", at, newName=new)["changes"][URI]
        lines = self.text.splitlines(keepends=True)
        for edit in sorted(
            edits, key=lambda edit: (edit["range"]["start"]["line"], -edit["range"]["start"]["character"])
        ):
            start, end = edit["range"]["start"], edit["range"]["end"]
            line = lines[start["line"]]
            lines[start["line"]] = line[: start["character"]] + edit["newText"] + line[end["character"] :]
        return "".join(lines)

    def findings(self) -> list[dict[str, Any]]:
        self.server.publish()
        return [one["params"]["diagnostics"] for one in self.got if "publishDiagnostics" in one.get("method", "")][-1]


@pytest.fixture(scope="module")
def client() -> Client:
    return Client()


def test_findings_are_those_of_check_and_can_be_fixed(client: Client) -> None:
    assert client.findings() == []
    wrong = Client(TEXT.replace("mul.f32", "mlu.f32").replace("ld.global", "ld.golbal"))
    found = wrong.findings()
    assert [(one["code"], one["severity"], one["range"]["start"]["line"]) for one in found] == [
        ("illegal-modifier", 1, 16),
        ("unknown-instruction", 1, 18),
    ]
    assert found[0]["message"].endswith("help: did you mean `.global`?")
    (fix,) = wrong.ask("codeAction", range={"start": {"line": 16, "character": 8}, "end": {"line": 16, "character": 8}})
    (edit,) = fix["edit"]["changes"][URI]
    assert (edit["newText"], edit["range"]["start"]) == (".global", {"line": 16, "character": 6})


def test_findings_follow_the_text() -> None:
    client = Client(TEXT.replace("ret;\n}", "ret\n}"))
    assert [one["code"] for one in client.findings()] == ["missing-semicolon"]
    changed = {"textDocument": {"uri": URI}, "contentChanges": [{"text": TEXT}]}
    client.server.handle({"method": "textDocument/didChange", "params": changed})
    assert client.findings() == []


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
    lines = [one["range"]["start"]["line"] for one in client.ask("references", "bra do|ne")]
    assert lines == [13, 24]
    lines = [one["range"]["start"]["line"] for one in client.ask("references", "mov.b64 {%r|1")]
    assert lines == [20, 21]


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


def test_completion() -> None:
    client = Client(TEXT.replace("    ret;\n}\n.v", "    ld.global.\n    mul.f32 %f1, %\n    se\n    ret;\n}\n.v"))
    labels = [one["label"] for one in client.ask("completion", "ld.global.|\n")]
    assert {"f32", "v4", "nc"} <= set(labels)
    labels = [one["label"] for one in client.ask("completion", "%f1, %|\n")]
    assert {"%f2", "%rd0", "%tid", "scale"} <= set(labels)
    labels = [one["label"] for one in client.ask("completion", "se|\n")]
    assert {"selp", "setp"} <= set(labels)


def test_symbols_and_formatting(client: Client) -> None:
    assert [one["name"] for one in client.ask("documentSymbol")] == [
        "scale", "saxpy", "other", "x", "n", "done", "done",
    ]  # fmt: skip
    (edit,) = client.ask("formatting", options={})
    assert edit["newText"].startswith(".version 8.0\n.target sm_80\n")
    with pytest.raises(LookupError, match="the file cannot be read: expected `;`"):
        Client(TEXT.replace("ret;\n}", "ret\n}")).ask("formatting", options={})


def test_positions_count_units_of_utf16() -> None:
    client = Client("// \U0001d49c\n.version 8.0\n.target sm_80\n")
    assert client.findings()[0]["range"] == {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 5}}


@pytest.mark.parametrize(
    "text", ["", "}", "{{{", ".reg", ".entry", ".func (", ".reg .b32 %r<", "@", "a:", "\x00", "/* "]
)
def test_any_text_is_answered(text: str) -> None:
    client = Client(text)
    assert isinstance(client.findings(), list)
    for method in ("hover", "definition", "references", "completion", "documentSymbol", "prepareRename"):
        client.ask(method)
        assert "error" not in client.got[-1]


def test_the_command() -> None:
    stream = io.BytesIO()
    opened = {"textDocument": {"uri": URI, "text": "hello"}}
    write_message(stream, {"id": 1, "method": "initialize", "params": {}})
    write_message(stream, {"method": "textDocument/didOpen", "params": opened})
    write_message(stream, {"id": 2, "method": "workspace/nothing"})
    write_message(stream, {"id": 3, "method": "shutdown"})
    write_message(stream, {"method": "exit"})
    done = subprocess.run(
        [sys.executable, "-m", "ptxlab", "lsp", "--stdio"], input=stream.getvalue(), capture_output=True, timeout=60
    )
    answers = io.BytesIO(done.stdout)
    first, second, third = (read_message(answers) for _ in range(3))
    assert first is not None
    assert first["result"]["capabilities"]["renameProvider"] == {"prepareProvider": True}
    assert second is not None
    assert second["error"]["message"] == "`workspace/nothing` is not answered"
    assert (third, done.returncode, done.stderr) == ({"jsonrpc": "2.0", "id": 3, "result": None}, 0, b"")
