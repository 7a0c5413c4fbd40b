// The extension for VS Code, with as much of its API as the extension uses: prints what a user would see.
const client = require(process.argv[2]);
const text = process.argv[4].replace(/\\n/g, "\n");
const providers = {};
const plain = (...names) => class { constructor(...values) { names.forEach((name, at) => (this[name] = values[at])); } };
const document = { languageId: "ptx", uri: { toString: () => "file:///k.ptx" }, getText: () => text, version: 1 };
const vscode = {
  Range: plain("line", "character", "endLine", "endCharacter"), TextEdit: plain("range", "text"), Location: plain("uri", "range"),
  Diagnostic: plain("range", "message", "severity"), Hover: plain("contents", "range"), MarkdownString: plain("value"),
  CompletionItem: plain("label", "kind"), DocumentHighlight: plain("range"), CodeAction: plain("title", "kind"),
  DocumentSymbol: plain("name", "detail", "kind", "range"), DiagnosticRelatedInformation: plain("location", "message"),
  WorkspaceEdit: class { set(uri, edits) { this.edits = edits; } }, Uri: { parse: (uri) => uri }, CodeActionKind: { QuickFix: "fix" },
  window: { showWarningMessage: console.error },
  workspace: new Proxy({ textDocuments: [document] }, { get: (all, name) => all[name] || (() => ({})) }),
  languages: new Proxy({}, { get: (_, name) => (language, provider) =>
    name === "createDiagnosticCollection" ? { set: (uri, found) => report(found) } : (providers[name] = provider, {}) }),
};
const context = { subscriptions: [] };
client.start(vscode, context, process.argv[3], () => true, false);
const early = providers.registerDocumentSymbolProvider.provideDocumentSymbols(document); // as an editor asks, before the server is ready

async function report(found) {
  const at = { line: 4, character: 3 };
  const hover = await providers.registerHoverProvider.provideHover(document, at);
  const renamed = await providers.registerRenameProvider.provideRenameEdits(document, { line: 3, character: 12 }, "%x");
  const symbols = await early;
  const fixes = await providers.registerCodeActionsProvider.provideCodeActions(document, { start: at, end: { line: 4, character: 12 } });
  const words = await providers.registerCompletionItemProvider.provideCompletionItems(document, { line: 4, character: 6 });
  console.log(JSON.stringify({
    found: found.map((one) => [one.code, one.severity, one.range.line]), hover: hover && hover.contents.value.split("\n")[0],
    renamed: renamed.edits.map((edit) => [edit.range.line, edit.text]), symbols: symbols.map((one) => one.name),
    fixes: fixes.map((fix) => [fix.title, fix.edit.edits[0].text]), words: words.map((one) => one.label).includes("u32"),
  }));
  context.subscriptions.forEach((one) => one.dispose && one.dispose());
}
