// Starts `ptxlab debug --dap` for sessions of type ptxlab.
const vscode = require("vscode");

exports.activate = (context) => {
  const factory = {
    createDebugAdapterDescriptor: () =>
      new vscode.DebugAdapterExecutable(vscode.workspace.getConfiguration("ptxlab").get("command"), ["debug", "--dap"]),
  };
  context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory("ptxlab", factory));
};
