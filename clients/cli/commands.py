"""The table of commands: module, panel and one-line help of each; and the text of `memd --help`.

Imports nothing, so that `memd --help` starts no other module. A test compares each line with the command's own help.
"""

PANELS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo", "Try memd on a sample session, in a temporary home."),
        "up": ("service", "Start the daemon in the background."),
        "down": ("service", "Stop the daemon."),
        "status": ("status", "Show recent activity, the backlog and failures."),
        "panel": ("panel", "See, correct and delete what memd knows, in a local web page."),
        "setup": ("setup", "Connect memd to an agent on this machine."),
        "unsetup": ("setup", "Disconnect memd from an agent and restore its files."),
        "doctor": ("doctor", "Check the installation and suggest fixes."),
    },
    "Ask": {
        "recall": ("recall", "Search memory. Each result names its source."),
        "report": ("report", "Show what happened in a week, and what needs you."),
        "state": ("state", "Show where the project stands: what is open and decided."),
        "profile": ("recall", "Show the profile that an agent receives in this folder."),
        "list": ("records", "List records, newest first."),
        "show": ("records", "Show one record, or all its versions."),
        "why": ("why", "Show the source of a record and every decision on it."),
        "topics": ("records", "Show what the memory of this folder is about, in groups."),
        "map": ("map", "Show all pools with their topics, or what is near one thing."),
        "links": ("links", "Show whether the documents behind records have changed."),
        "skill": ("skill", "Show procedures that sessions repeated, as drafts of skills."),
        "timeline": ("records", "Show how a subject changed over time."),
        "rhythm": ("map", "Show how much was learned and retired over time."),
        "injected": ("context", "Show the exact texts that agents received."),
        "feedback": ("recall", "Rate an answer. Ranking learns from it."),
    },
    "Change": {
        "remember": ("edit", "Remember a statement."),
        "edit": ("edit", "Reword a record."),
        "correct": ("edit", "Replace a wrong record with a correct statement."),
        "confirm": ("edit", "Confirm records: they are right."),
        "reject": ("edit", "Reject records: they are wrong, and nothing replaces them."),
        "pin": ("edit", "Pin records: they come first in the profile."),
        "unpin": ("edit", "Unpin records."),
        "persona": ("persona", "Show or set who you are and the tone, for every agent."),
        "review": ("edit", "Set when to look at a record again, and what would change it."),
        "evidence": ("edit", "Show what proves a record, or add files and commits."),
        "learn": ("edit", "Note what a record teaches for one concern of an agent."),
        "restore": ("edit", "Restore archived records."),
        "undo": ("forget", "Hide everything learned from a session or an import."),
        "redo": ("forget", "Reverse `memd undo`."),
        "inbox": ("inbox", "List, accept or reject proposed changes."),
        "curate": ("curate", "Propose what the playbook should take in or give up."),
    },
    "Privacy": {
        "pause": ("control", "Stop capturing for a while."),
        "resume": ("control", "End a pause."),
        "forget": ("forget", "Delete records and their sources permanently."),
        "scan": ("forget", "Find secrets in stored data and redact them."),
        "grant": ("grant", "Issue a read-only pass for an agent or a tool."),
        "grants": ("grant", "List passes and revoked sources."),
        "revoke": ("grant", "Revoke a pass, or hide everything from a source."),
        "remote": ("remote", "Let a language model of your choice read ended sessions."),
    },
    "Projects and agents": {
        "pools": ("scope", "List pools: your personal one and one per project."),
        "scope": ("scope", "Show or change the pool of a folder or a record."),
        "leave": ("scope", "Stop reading a project's memory, or start again."),
        "share": ("share", "Share a project's memory with those who share its repository."),
        "hub": ("hub", "Share memory with an organisation, through a hub."),
        "pi": ("pi", "Keep a project's playbook in its repository, as patches."),
        "patch": ("patch", "Show and decide proposed changes of a project's playbook."),
        "agent": ("agent", "List agents with a memory; create, teach or rank them."),
        "policy": ("policy", "Show a project's policy, accept it, or check a file."),
        "session": ("session", "List or find sessions; show, summarise or read one."),
    },
    "Data": {
        "import": ("imports", "Import sessions, notes and commits from other tools."),
        "ingest": ("ingest", "Take in large files: choose among items, get a summary."),
        "export": ("export", "Export records with their sources and history."),
        "context": ("context", "Build the context package of a project."),
        "backup": ("storage", "Make a backup while memd keeps running."),
        "restore-backup": ("storage", "Replace the current memory with a backup."),
        "du": ("storage", "Show disk usage and how to reduce it."),
    },
    "Maintenance": {
        "config": ("config", "Show or change settings."),
        "model": ("model", "List, select or check the embedding model."),
        "service": ("service", "Run memd at login, with systemd or launchd."),
        "logs": ("logs", "Show the daemon's log."),
        "tail": ("logs", "Show the latest journal operations."),
        "retry": ("control", "List captures that failed, or process them again."),
        "verify": ("storage", "Check the integrity of everything stored."),
        "rebuild": ("storage", "Rebuild indexes from the journal."),
        "maintain": ("maintain", "Archive unused records, expire captures, compact files."),
        "bench": ("bench", "Measure memd on this machine."),
        "uninstall": ("setup", "Remove memd from this system. Your memory stays."),
    },
    "Integrate": {
        "mcp": ("integrate", "Serve memory to an MCP host over standard input and output."),
        "shell": ("integrate", "Let bash, zsh or fish report the commands you run."),
        "plugin": ("integrate", "Print the place of a plugin: Neovim, Emacs, VS Code, Node."),
        "spool": ("integrate", "Store captures without secrets until the daemon reads them."),
        "completion": ("integrate", "Print shell completion code."),
        "man": ("integrate", "Print the manual page."),
    },
}
"""Panel → command → module below this package, first sentence of the command's help; in the order of `memd --help`."""

COMMANDS = {name: module for panel in PANELS.values() for name, (module, _) in panel.items()}

ALIASES = {
    "history": "records",
    "fading": "maintain",
    "unused": "maintain",
    "sleep": "maintain",
    "expire": "maintain",
    "compact": "maintain",
}
"""Former top-level names that still work and that no help lists: `memd show --history`, `memd maintain NAME`."""

ABOUT = "One memory for every AI tool on this machine: private, fast, explainable,\ncorrectable."
FIRST_STEPS = "First steps: `memd demo` shows memd in half a minute; `memd setup` guides you."


def help_text() -> str:
    """The text of `memd --help`, at most 80 columns wide."""
    longest = max(map(len, COMMANDS)) + 2
    lines = ["Usage: memd [OPTIONS] COMMAND [ARGS]...", "", ABOUT]
    for panel, commands in PANELS.items():
        lines += ["", panel, *(f"  {name:<{longest}}{about}" for name, (_, about) in commands.items())]
    lines += ["", "Options", f"  {'-h, --help':<{longest}}Show this help. `memd COMMAND --help` has examples."]
    lines += [f"  {'--version':<{longest}}Print the version."]
    return "\n".join([*lines, "", FIRST_STEPS])
