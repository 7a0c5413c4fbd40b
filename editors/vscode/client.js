// What `ptxlab lsp` says of the open files: findings, hovers, completion, definitions, names, format, fixes.
const { spawn } = require("child_process");

class Connection {
  // Messages of the Language Server Protocol: JSON with a header that says its length.
  constructor(command, onNotification, onEnd) {
    this.waiting = new Map();
    this.number = 0;
    this.received = Buffer.alloc(0);
    this.server = spawn(command, ["lsp", "--stdio"]);
    let said = "";
    this.server.stderr.on("data", (part) => (said = `${said}${part}`.slice(-1000)));
    this.server.on("error", onEnd);
    this.server.on("close", (status) => onEnd(status ? new Error(said.trim()) : undefined));
    this.server.stdin.on("error", () => {});
    this.server.stdout.on("data", (part) => {
      this.received = Buffer.concat([this.received, part]);
      for (let message; (message = this.next()); ) {
        const answer = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        if (!answer) onNotification(message);
        else if (message.error) answer.reject(new Error(message.error.message));
        else answer.resolve(message.result);
      }
    });
  }

  next() {
    const end = this.received.indexOf("\r\n\r\n");
    if (end < 0) return undefined;
    const length = Number(/Content-Length: (\d+)/i.exec(this.received.toString("ascii", 0, end))[1]);
    if (this.received.length < end + 4 + length) return undefined;
    const body = this.received.toString("utf8", end + 4, end + 4 + length);
    this.received = this.received.subarray(end + 4 + length);
    return JSON.parse(body);
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.server.stdin.write(body);
  }

  ask(method, params, token) {
    const id = ++this.number;
    if (token) token.onCancellationRequested(() => this.waiting.has(id) && this.send({ method: "$/cancelRequest", params: { id } }));
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.send({ id, method, params });
    return answer;
  }
}

exports.start = (vscode, context, command, isOurs, python) => {
  const range = ({ start, end }) => new vscode.Range(start.line, start.character, end.line, end.character);
  const edits = (list) => (list || []).map((edit) => new vscode.TextEdit(range(edit.range), edit.newText));
  const location = (one) => new vscode.Location(vscode.Uri.parse(one.uri), range(one.range));
  const workspaceEdit = ({ changes }) => {
    const edit = new vscode.WorkspaceEdit();
    for (const [uri, list] of Object.entries(changes)) edit.set(vscode.Uri.parse(uri), edits(list));
    return edit;
  };
  const finding = (one) => {
    const found = new vscode.Diagnostic(range(one.range), one.message, one.severity - 1);
    const others = one.relatedInformation || [];
    found.relatedInformation = others.map((o) => new vscode.DiagnosticRelatedInformation(location(o.location), o.message));
    return Object.assign(found, { code: one.code, source: one.source });
  };

  const shown = vscode.languages.createDiagnosticCollection("ptxlab");
  const connection = new Connection(
    command,
    ({ method, params }) => {
      if (method === "textDocument/publishDiagnostics")
        shown.set(vscode.Uri.parse(params.uri), params.diagnostics.map(finding));
    },
    (wrong) => wrong && vscode.window.showWarningMessage(`ptxlab: \`${command} lsp\` can't be started: ${wrong.message}`),
  );
  const place = ({ line, character }) => ({ line, character });
  const version = (document) => ({ uri: document.uri.toString(), version: document.version });
  const about = (document, position) => ({ textDocument: { uri: document.uri.toString() }, position: position && place(position) });
  const { languages, workspace } = vscode;
  const capabilities = { textDocument: { rename: { prepareSupport: true }, publishDiagnostics: { relatedInformation: true } } };
  let isReady = false;
  // Nothing is said or asked before the server has answered the first request; it then knows all documents that are open.
  const ready = connection.ask("initialize", { processId: process.pid, rootUri: null, capabilities, initializationOptions: { python } }).then(() => {
    connection.send({ method: "initialized", params: {} });
    isReady = true;
    workspace.textDocuments.forEach(opened);
  });
  ready.catch(() => {}); // `onEnd` has said why
  const ask = (method, document, position, more, token) =>
    ready.then(() => connection.ask(`textDocument/${method}`, { ...about(document, position), ...more }, token));

  const opened = (document) =>
    isReady && isOurs(document) &&
    connection.send({ method: "textDocument/didOpen", params: { textDocument: { ...version(document), languageId: document.languageId, text: document.getText() } } });
  const changed = ({ document, contentChanges }) =>
    isReady && isOurs(document) && contentChanges.length &&
    connection.send({ method: "textDocument/didChange", params: {
      textDocument: version(document),
      contentChanges: contentChanges.map((one) => ({ range: { start: place(one.range.start), end: place(one.range.end) }, text: one.text })),
    } });
  const saved = (document) => isReady && isOurs(document) && connection.send({ method: "textDocument/didSave", params: about(document) });
  const closed = (document) =>
    isReady && isOurs(document) && connection.send({ method: "textDocument/didClose", params: about(document) });

  context.subscriptions.push(
    shown,
    { dispose: () => connection.server.kill() },
    workspace.onDidOpenTextDocument(opened),
    workspace.onDidChangeTextDocument(changed),
    workspace.onDidSaveTextDocument(saved),
    workspace.onDidCloseTextDocument(closed),
    languages.registerHoverProvider("ptx", {
      provideHover: async (document, position, token) => {
        const found = await ask("hover", document, position, {}, token);
        return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), range(found.range));
      },
    }),
    languages.registerCompletionItemProvider("ptx", {
      provideCompletionItems: async (document, position, token) =>
        (await ask("completion", document, position, {}, token)).map((one) =>
          Object.assign(new vscode.CompletionItem(one.label, one.kind - 1), { detail: one.detail })),
    }, ".", "%", "["),
    languages.registerDefinitionProvider("ptx", {
      provideDefinition: async (document, position) => {
        const found = await ask("definition", document, position);
        return found && location(found);
      },
    }),
    languages.registerReferenceProvider("ptx", {
      provideReferences: async (document, position, context) =>
        (await ask("references", document, position, { context: { includeDeclaration: context.includeDeclaration } })).map(location),
    }),
    languages.registerDocumentHighlightProvider("ptx", {
      provideDocumentHighlights: async (document, position, token) =>
        (await ask("documentHighlight", document, position, {}, token)).map((one) => new vscode.DocumentHighlight(range(one.range))),
    }),
    languages.registerRenameProvider("ptx", {
      prepareRename: async (document, position) => {
        const found = await ask("prepareRename", document, position);
        if (!found) throw new Error("there is no name here that the file declares");
        return { range: range(found.range), placeholder: found.placeholder };
      },
      provideRenameEdits: async (document, position, newName) =>
        workspaceEdit(await ask("rename", document, position, { newName })),
    }),
    languages.registerDocumentSymbolProvider("ptx", {
      provideDocumentSymbols: async (document) =>
        (await ask("documentSymbol", document)).map((one) =>
          new vscode.DocumentSymbol(one.name, one.detail, one.kind - 1, range(one.range), range(one.selectionRange))),
    }),
    languages.registerDocumentFormattingEditProvider("ptx", {
      provideDocumentFormattingEdits: async (document, { tabSize, insertSpaces }) =>
        edits(await ask("formatting", document, undefined, { options: { tabSize, insertSpaces } })),
    }),
    languages.registerCodeActionsProvider("ptx", {
      provideCodeActions: async (document, { start, end }) =>
        (await ask("codeAction", document, undefined, { range: { start: place(start), end: place(end) }, context: { diagnostics: [] } })).map((one) =>
          Object.assign(new vscode.CodeAction(one.title, vscode.CodeActionKind.QuickFix), {
            edit: workspaceEdit(one.edit), isPreferred: true,
          })),
    }),
  );
  return connection;
};
