// Starts `ptxlab lsp` for the open files and `ptxlab debug --dap` for sessions of type ptxlab; runs kernels, and shows the lab.
const vscode = require("vscode");
const { exec } = require("child_process");
const { mkdtempSync, readFileSync, rmSync } = require("fs");
const { tmpdir } = require("os");
const { basename, dirname, join } = require("path");
const client = require("./client");

exports.activate = (context) => {
  const command = () => vscode.workspace.getConfiguration("ptxlab").get("command");
  const factory = {
    createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(command(), ["debug", "--dap"]),
  };

  // How a kernel is launched: what was said last, or a comment `// run: --block 64 --arg u32[64]=arange` of the file.
  const launch = async (document) => {
    const key = `launch ${document.uri}`;
    const said = /^\s*\/\/ run: (.*)$/m.exec(document.getText());
    const value = context.workspaceState.get(key) || (said ? said[1] : "--block 32");
    const given = await vscode.window.showInputBox({ title: basename(document.fileName), prompt: "How to launch it, as for `ptxlab run`", value });
    if (given !== undefined) {
      await document.save();
      await context.workspaceState.update(key, given);
    }
    return given;
  };
  const quoted = (text) => `"${text}"`;
  const withKernel = (does) => async () => {
    const editor = vscode.window.activeTextEditor;
    const how = editor && (await launch(editor.document));
    if (how !== undefined) does(editor.document.fileName, how);
  };
  let terminal;
  const run = (file, how) => {
    if (!terminal || terminal.exitStatus) terminal = vscode.window.createTerminal("ptxlab");
    terminal.show(true);
    terminal.sendText(`${quoted(command())} run ${quoted(file)} ${how}`);
  };
  const lab = (file, how) => {
    const folder = mkdtempSync(join(tmpdir(), "ptxlab-"));
    const page = join(folder, "lab.html");
    const line = `${quoted(command())} lab ${quoted(file)} ${how} --html ${quoted(page)}`;
    const work = new Promise((resolve) => exec(line, { cwd: dirname(file) }, (wrong, _, said) => resolve(wrong && said)));
    const progress = { location: vscode.ProgressLocation.Notification, title: "ptxlab records the kernel" };
    return vscode.window.withProgress(progress, () => work).then((wrong) => {
      if (wrong) return vscode.window.showErrorMessage(wrong.trim());
      const panel = vscode.window.createWebviewPanel("ptxlab.lab", `Lab: ${basename(file)}`, vscode.ViewColumn.Beside, {
        enableScripts: true, retainContextWhenHidden: true,
      });
      panel.webview.html = readFileSync(page, "utf8");
    }).then(() => rmSync(folder, { recursive: true }));
  };

  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("ptxlab", factory),
    vscode.commands.registerCommand("ptxlab.run", withKernel(run)),
    vscode.commands.registerCommand("ptxlab.lab", withKernel(lab)),
  );
  // The server starts with the first file that it knows.
  const python = vscode.workspace.getConfiguration("ptxlab").get("python");
  const isOurs = (document) =>
    document.languageId === "ptx" || (document.uri.scheme === "file" && document.fileName.endsWith(".cu")) ||
    (python && document.languageId === "python");
  let connection;
  const begin = (document) => {
    if (!connection && isOurs(document)) connection = client.start(vscode, context, command(), isOurs, python);
  };
  vscode.workspace.textDocuments.forEach(begin);
  context.subscriptions.push(vscode.workspace.onDidOpenTextDocument(begin));
};
