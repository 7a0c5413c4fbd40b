// Starts `ptxlab lsp` for the open PTX files, and `ptxlab debug --dap` for sessions of type ptxlab.
const vscode = require("vscode");
const client = require("./client");

exports.activate = (context) => {
  const command = () => vscode.workspace.getConfiguration("ptxlab").get("command");
  const factory = {
    createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(command(), ["debug", "--dap"]),
  };
  context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory("ptxlab", factory));
  client.start(vscode, context, command());
};
