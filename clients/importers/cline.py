"""Cline's and Roo Code's tasks, as capture events.

The Cline CLI and the extension since 4.0 write `~/.cline/data/sessions/<id>/<id>.messages.json`, with the id, the role
and the time of each message. Earlier extensions and Roo Code write `tasks/<id>/ui_messages.json`, which has the user's
words apart from the surroundings that the extension adds for the model.
Invariants: the message's id or time names a turn; only the text in `<user_input>`, `<task>`, `<feedback>`, `<answer>`
or `<user_message>`, or a message without any such mark, is the user's word (W5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import ToolCalled
from .json_line import BadLine, ContentBlock, arguments, arguments_in, decode
from .session_reader import combined, named_blocks, take_line
from .store_reader import StoreReader, instant_of, read_whole
from .transcript import AccountBuilder, Mark, Transcript

HOST, ROO = "cline", "roo-code"
LEAD = "lead"
_HEAD = 512 * 1024
_ROO_FOLDER = "rooveterinaryinc.roo-cline"

_TYPED = re.compile(r"<(user_input|task|feedback|answer|user_message)\b[^>]*>(.*?)</\1>", re.DOTALL)
_SURROUNDINGS = re.compile(
    r"<(environment_details|explicit_instructions|file_content|folder_content|url_content|workspace_diagnostics)\b"
    r"[^>]*>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_OF_THE_HOST = re.compile(r"\s*(?:\[[\w ]+(?: for [^\]]*)?\] Result:|\[ERROR\]|\[TASK RESUMPTION\]|<tool_result)")
_CWD = re.compile(r"Current (?:Working|Workspace) Directory \(([^()\n\"\\]{1,500})\)")


class ClineMessage(msgspec.Struct, frozen=True):
    """A message of `<id>.messages.json`."""

    role: str = ""
    content: str | list[ContentBlock] = ""
    id: str | None = None
    ts: float | None = None


class ClineSession(msgspec.Struct, frozen=True, rename="camel"):
    """The file `<id>.messages.json`. `agent`: "lead", or the kind of an agent that the lead began."""

    session_id: str
    messages: list[msgspec.Raw]
    agent: str = LEAD


class ClineManifestMetadata(msgspec.Struct, frozen=True):
    """The title of a session."""

    title: str | None = None


class ClineManifest(msgspec.Struct, frozen=True):
    """The file `<id>.json` beside the messages."""

    cwd: str | None = None
    metadata: ClineManifestMetadata | None = None


class ClineShown(msgspec.Struct, frozen=True):
    """A message of `ui_messages.json`: `say` or `ask` tells its kind."""

    ts: float | None = None
    type: str = ""
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    partial: bool | None = None


class ClineQuestion(msgspec.Struct, frozen=True):
    """A question of the agent."""

    question: str = ""


class ClineTool(msgspec.Struct, frozen=True):
    """A tool call as the extension shows it."""

    tool: str = "tool"
    path: str = ""


_sessions = msgspec.json.Decoder(ClineSession)
_manifests = msgspec.json.Decoder(ClineManifest)
_messages = msgspec.json.Decoder(ClineMessage)
_all_shown = msgspec.json.Decoder(list[msgspec.Raw])
_shown = msgspec.json.Decoder(ClineShown)
_questions = msgspec.json.Decoder(ClineQuestion)
_tools = msgspec.json.Decoder(ClineTool)


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the task in a file; a mark changes nothing, since Cline writes the file anew. Raises StoreError."""
    reader: ClineReader = ShownReader(path) if path.name == "ui_messages.json" else ClineReader(path)
    reader.output_limit, reader.sources.folder = output_limit, cwd
    account = AccountBuilder()
    try:
        for content in reader.begin(read_whole(path)):
            take_line(content, False, reader, account)
            reader.sources.place += len(content)
    except BadLine as error:
        account.refuse(str(error))
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account.close())


class ClineReader(StoreReader):
    """Reads the messages of `<id>.messages.json`."""

    host = HOST

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def begin(self, content: bytes) -> Iterator[bytes]:
        """Take the file; return its messages. Raises BadLine."""
        session = decode(_sessions, content)
        is_lead = session.agent == LEAD
        name = self._path.name.removesuffix(".messages.json")
        self.document = self.open(session.session_id, "" if is_lead else name)
        self.document.agent_type = "" if is_lead else session.agent
        with suppress(BadLine, StoreError):
            manifest = decode(_manifests, read_whole(self._path.with_name(f"{self._path.parent.name}.json")))
            self.document.cwd = manifest.cwd or ""
            self.document.title = (manifest.metadata and manifest.metadata.title) or ""
        return map(bytes, session.messages)

    def take(self, content: bytes, number: int) -> str:
        """Take a message; return its kind. Raises BadLine."""
        message = decode(_messages, content)
        if message.ts is not None:
            self.time = instant_of(message.ts)
        self.check_time()
        self.document.seen(self.time)
        turn = message.id or f"{message.role}-{number}"
        return combined([self._block(message.role, block, name) for block, name in named_blocks(message.content, turn)])

    def _block(self, role: str, block: ContentBlock, turn: str) -> str:
        match role, block.type:
            case "user", "text":
                return self._typed(turn, block.text or "")
            case "assistant", "text":
                return self.document.say(turn, self.time, "assistant", block.text or "")
            case "assistant", "tool_use":
                called = ToolCalled(
                    turn=block.id or f"{turn}#{block.name}",
                    at=self.time,
                    name=block.name or "tool",
                    arguments=arguments(block.input),
                )
                return self.document.add(called)
            case "user", "tool_result" if block.tool_use_id:
                self.document.settle(block.tool_use_id, "error" if block.is_error else "ok")
                return self.take_output(block.tool_use_id, block.content)
            case _:
                return (block.type or "block without a type")[:40]

    def _typed(self, turn: str, text: str) -> str:
        if self.document.agent:
            return "subagent's task"
        typed = typed_text(text)
        return self.document.say(turn, self.time, "user", typed) if typed else "text of Cline"


class ShownReader(ClineReader):
    """Reads the messages of `ui_messages.json`; its first text is the user's task."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.host = ROO if _ROO_FOLDER in path.parts else HOST
        self._has_task = False
        self._call = ""

    def begin(self, content: bytes) -> Iterator[bytes]:
        """Take the file; return its messages. Raises BadLine."""
        self.document = self.open(self._path.parent.name)
        self.document.cwd = _folder_of(self._path.with_name("api_conversation_history.json"))
        return map(bytes, decode(_all_shown, content))

    def take(self, content: bytes, number: int) -> str:
        """Take a message; return its kind. Raises BadLine."""
        message = decode(_shown, content)
        self.time = instant_of(message.ts)
        self.document.seen(self.time)
        kind = message.say or message.ask or "message without a kind"
        if message.partial:
            return "partial message"
        return self._message(kind, f"{kind}-{int(message.ts or 0)}", message.text or "")

    def _message(self, kind: str, turn: str, text: str) -> str:
        document = self.document
        if not self._has_task and kind in {"task", "text"}:
            self._has_task = True
            return self._typed(turn, text)
        match kind:
            case "user_feedback":
                return self._typed(turn, text)
            case "text" | "completion_result":
                return document.say(turn, self.time, "assistant", text)
            case "followup":
                with suppress(BadLine):
                    text = decode(_questions, text.encode()).question or text
                return document.say(turn, self.time, "assistant", text)
            case "command":
                self._call = turn
                command = msgspec.json.encode({"command": text}).decode()
                return document.add(
                    ToolCalled(turn=turn, at=self.time, name="execute_command", arguments=arguments_in(command))
                )
            case "command_output" if self._call:
                return self.take_output(self._call, text)
            case "tool":
                return self._tool(turn, text)
            case _:
                return kind[:40]

    def _tool(self, turn: str, text: str) -> str:
        tool = decode(_tools, text.encode(), "tool")
        shown = msgspec.json.encode({"path": tool.path}).decode() if tool.path else ""
        return self.document.add(ToolCalled(turn=turn, at=self.time, name=tool.tool, arguments=arguments_in(shown)))


def typed_text(text: str) -> str:
    """Return the user's words in a text that Cline sent to a model as the user's, "" if there are none."""
    typed = [words.strip() for _, words in _TYPED.findall(text)]
    if typed:
        return "\n".join(filter(None, (_SURROUNDINGS.sub("", words).strip() for words in typed)))
    return "" if _OF_THE_HOST.match(text) else _SURROUNDINGS.sub("", text).strip()


def _folder_of(history: Path) -> str:
    """Return the task's folder, which the extension tells the model, "" if the file has none."""
    with suppress(OSError), history.open("rb") as file:
        if told := _CWD.search(file.read(_HEAD).decode(errors="replace")):
            return told[1]
    return ""
