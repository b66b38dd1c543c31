// memd in VS Code: a thin client of the daemon. docs/hosts/vscode.md describes it.
import fs from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import { Client, places } from "./client/client.js";
import { Commands } from "./commands.js";
import { FolderMemories } from "./folder_memories.js";
import { MemoryHover } from "./hover.js";
import { StatusBar } from "./status_bar.js";

/** @param {vscode.ExtensionContext} context */
export function activate(context) {
  const client = new Client({ program: program() });
  const memories = new FolderMemories(client);
  const bar = new StatusBar(client);
  const commands = new Commands(client, () => {
    memories.forget();
    void bar.refresh();
  });
  context.subscriptions.push(
    { dispose: () => client.close() },
    bar,
    ...commands.register(),
    vscode.commands.registerCommand("memd.menu", () => bar.menu()),
    vscode.languages.registerHoverProvider({ scheme: "file" }, new MemoryHover(memories)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (!change.affectsConfiguration("memd")) return;
      client.program = program();
      void bar.refresh();
    }),
  );
  // A fork of VS Code may lack this part of its interface.
  if (vscode.lm?.registerMcpServerDefinitionProvider) {
    context.subscriptions.push(
      vscode.lm.registerMcpServerDefinitionProvider("memd.mcp", { provideMcpServerDefinitions: () => [server(context)] }),
    );
  }
}

/** Returns the program of the setting, else the one that wrote the extension's file (`memd plugin vscode`). */
function program() {
  return vscode.workspace.getConfiguration("memd").get("program", "") || writer() || "memd";
}

function writer() {
  try {
    const file = fs.readFileSync(path.join(places().state, "vscode", "program"), "utf8").trim();
    return fs.existsSync(file) ? file : "";
  } catch {
    return "";
  }
}

/** Returns how an agent's host starts memd's MCP server. @param {vscode.ExtensionContext} context */
function server(context) {
  const definition = new vscode.McpStdioServerDefinition("memd", program(), ["mcp"], {}, context.extension.packageJSON.version);
  definition.cwd = vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file")?.uri;
  return definition;
}
