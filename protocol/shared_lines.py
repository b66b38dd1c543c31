"""The lines and heads of a partition: what one author on one device tells the others of a project (H1, W7).

A partition is a sequence of lines, stored in segments of `SEGMENT` lines, and a signed head. Invariants: a line is
written once and later only replaced by `gone` with its hash; the hash of such a line is the one that it names, so that
forgetting changes no hash of a segment; nothing here quotes a session or names a document, a folder or a host;
`cryptography` is imported only where a head is verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from .errors import InvalidRequest

SHARED_VERSION = 1
SEGMENT = 256
"""Lines of a full segment; only the last one of a partition has fewer."""

LINE_BYTES = 4_096
HEAD_BYTES = 4_096
NAME_CHARACTERS = 64
MOST_LINES = 768_000
"""Lines of a partition: GitHub takes 3,000 entries in a folder."""

PARTITION_CHARACTERS = 24
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_SIGNED = b"memd-share-v1\0"

SharedKind = Literal["fact", "note", "edge"]


class SharedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op"):
    """Base of the lines. `n`: its number in the partition, from 0; `l`: Lamport time; `at`: microseconds of UTC by the
    author's clock; `b`: 16 random bytes in hexadecimal, so that the hash of a forgotten line confirms no guess."""

    n: int
    l: int  # noqa: E741
    at: int
    b: str


class AddLine(SharedLine, tag="add", frozen=True, kw_only=True):
    """The author shares a statement. `said`: the day on which it was said; `of`: names (`PARTITION/N`) of the lines
    that it puts right."""

    kind: SharedKind
    text: str
    type: str = "note"
    key: str = ""
    value: str = ""
    tags: tuple[str, ...] = ()
    lang: str = "en"
    since: str = msgspec.field(default="", name="from")
    until: str = ""
    said: str = ""
    conf: float = 0.5
    vol: Literal["stable", "semi", "situational"] = "semi"
    of: tuple[str, ...] = ()


class InvLine(SharedLine, tag="inv", frozen=True, kw_only=True):
    """The author no longer holds a statement of any partition to be true. `id`: `PARTITION/N`; `until`: world time."""

    id: str
    until: str = ""
    why: str = ""


class GoneLine(msgspec.Struct, frozen=True, kw_only=True):
    """The author forgot the line that stood here; `gone` is its hash in hexadecimal."""

    gone: str


class OtherLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a later version: kept, and skipped."""

    n: int
    op: str


AnySharedLine = AddLine | InvLine | GoneLine | OtherLine


class ShareMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The project of a share: its root commit and its canonical remote when sharing began (P3)."""

    root: str = ""
    remote: str = ""


class ShareHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The signed state of a partition. `epoch` grows when lines become gone; `count`: lines; `tip`: hash over the
    segments, hexadecimal; `lamport`: the highest of its lines; `closed`: the author left. `key`: the public key,
    hexadecimal; `name`: what the author calls himself."""

    memd: int = SHARED_VERSION
    share: ShareMark
    partition: str
    key: str
    name: str
    epoch: int
    count: int
    tip: str
    lamport: int = 0
    closed: bool = False
    at: int = 0
    signature: str = ""


class MalformedShare(Exception):
    """A head or a line is not one; the text says why, without repeating it."""


_encoder = msgspec.json.Encoder(order="deterministic")
_heads = msgspec.json.Decoder(ShareHead)
_lines = msgspec.json.Decoder(AddLine | InvLine)
_gone = msgspec.json.Decoder(GoneLine)


# --- marks -----------------------------------------------------------------------------------------------------------
def of_repository(root_commit: str, remote: str) -> str:
    """Return the name of a repository; one of both may be unknown ("")."""
    return f"repository:{root_commit}@{remote}"


def parts_of(name: str) -> tuple[str, str]:
    """Return root commit and remote of a repository's name, ("", "") for any other name."""
    kind, _, rest = name.partition(":")
    root, _, remote = rest.partition("@")
    return (root, remote) if kind == "repository" else ("", "")


# --- lines -----------------------------------------------------------------------------------------------------------
def encode_shared(line: AddLine | InvLine | GoneLine) -> bytes:
    """Return the bytes of a line, without a newline."""
    return _encoder.encode(line)


def decode_shared(raw: bytes, number: int) -> AnySharedLine:
    """Decode the line at place `number` of a partition. Raises MalformedShare."""
    if len(raw) > LINE_BYTES:
        raise MalformedShare(f"line {number} is longer than {LINE_BYTES} bytes")
    try:
        if raw.startswith(b'{"gone":'):
            gone = _gone.decode(raw)
            if encode_shared(gone) != raw or len(bytes.fromhex(gone.gone)) != 32:
                raise MalformedShare(f"line {number} is not a gone line")
            return gone
        line: AddLine | InvLine | OtherLine = _known_or_other(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedShare(f"line {number} cannot be read") from error
    if line.n != number:
        raise MalformedShare(f"line {number} has another number")
    return line


def _known_or_other(raw: bytes) -> AddLine | InvLine | OtherLine:
    try:
        return _lines.decode(raw)
    except msgspec.ValidationError:
        other = msgspec.json.decode(raw, type=OtherLine)
        if other.op in ("add", "inv"):
            raise
        return other


def line_hash(raw: bytes) -> bytes:
    """Return the hash of a line's bytes, 32 bytes; of a gone line the one that it names."""
    if raw.startswith(b'{"gone":"'):
        return bytes.fromhex(raw[9:73].decode("ascii", "replace"))
    return blake2b(raw, digest_size=32).digest()


def split_segment(data: bytes) -> list[bytes]:
    """Return the lines of a segment. Raises MalformedShare."""
    if not data.endswith(b"\n"):
        raise MalformedShare("a segment does not end with a line")
    lines = data[:-1].split(b"\n")
    if len(lines) > SEGMENT:
        raise MalformedShare(f"a segment has more than {SEGMENT} lines")
    return lines


def segment_hash(hashes: Iterable[bytes]) -> bytes:
    """Return the hash of a segment from those of its lines, 32 bytes."""
    return blake2b(b"".join(hashes), digest_size=32).digest()


def tip_of(segments: Iterable[bytes]) -> str:
    """Return the tip of a partition from the hashes of its segments, hexadecimal."""
    return blake2b(b"".join(segments), digest_size=32).hexdigest()


def line_name(partition: str, number: int) -> str:
    """Return the name by which other lines refer to a line."""
    return f"{partition}/{number}"


def parse_line_name(name: str) -> tuple[str, int]:
    """Return the partition and the number in a line's name. Raises MalformedShare."""
    partition, _, number = name.partition("/")
    if not is_partition(partition) or not (number.isascii() and number.isdecimal() and len(number) <= 6):
        raise MalformedShare("this is not the name of a shared line")
    return partition, int(number)


# --- heads -----------------------------------------------------------------------------------------------------------
def is_partition(name: str) -> bool:
    """Whether a text has the form of a partition's name."""
    return len(name) == PARTITION_CHARACTERS and all(character in _ALPHABET for character in name)


def partition_of(public_key: bytes) -> str:
    """Return the name of the partition of a public key: base32 of its BLAKE2b hash of 120 bits."""
    number = int.from_bytes(blake2b(public_key, digest_size=15).digest())
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(115, -1, -5))


def encode_head(head: ShareHead) -> bytes:
    """Return the bytes of a head: JSON with sorted keys, and a newline."""
    return msgspec.json.encode(msgspec.to_builtins(head), order="sorted") + b"\n"


def decode_head(raw: bytes) -> ShareHead:
    """Decode a head and check its form, not its signature. Raises MalformedShare."""
    if len(raw) > HEAD_BYTES:
        raise MalformedShare(f"the head is longer than {HEAD_BYTES} bytes")
    try:
        head = _heads.decode(raw)
        well_formed = len(bytes.fromhex(head.key)) == 32 and len(bytes.fromhex(head.tip)) == 32
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedShare("the head cannot be read") from error
    if head.memd > SHARED_VERSION:
        raise MalformedShare(f"the head has version {head.memd}: install a newer memd to read it")
    if not (well_formed and 0 <= head.count <= MOST_LINES and head.epoch >= 0 and head.lamport >= 0):
        raise MalformedShare("the head has impossible numbers")
    if partition_of(bytes.fromhex(head.key)) != head.partition:
        raise MalformedShare("the head's key is not the one that the partition is named by")
    return head


def signed_bytes(raw: bytes) -> bytes:
    """Return the bytes that the signature of an encoded head covers: all fields, also those of later versions."""
    fields: dict[str, Any] = msgspec.json.decode(raw)
    fields.pop("signature", None)
    return _SIGNED + msgspec.json.encode(fields, order="sorted")


def verified_head(raw: bytes) -> ShareHead:
    """Return a head whose signature is that of the key that its partition is named by. Raises MalformedShare."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    head = decode_head(raw)
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(head.key))
        public.verify(bytes.fromhex(head.signature), signed_bytes(raw))
    except (InvalidSignature, ValueError) as error:
        raise MalformedShare("the signature of the head is not the one of its key") from error
    return head


def segments_of(count: int) -> int:
    """Return the number of segments of so many lines."""
    return -(-count // SEGMENT)


def shown_name(name: str) -> str:
    """Return an author's name as memd may show it: one line of printable characters. Raises InvalidRequest for none."""
    clean = "".join(character for character in " ".join(name.split()) if character.isprintable())[:NAME_CHARACTERS]
    if not clean:
        raise InvalidRequest("the name has no characters that can be shown", hint="memd share on --name NAME")
    return clean


def chosen_name(name: str) -> str:
    """Return the name that a user chose as others see it. Raises InvalidRequest for none and for a long one."""
    if (length := len(" ".join(name.split()))) > NAME_CHARACTERS:
        hint = "choose a shorter one: memd share on --name NAME"
        raise InvalidRequest(f"the name has {length} characters, and at most {NAME_CHARACTERS} are shown", hint=hint)
    return shown_name(name)


def check_hashes(hashes: Sequence[bytes], head: ShareHead) -> None:
    """Check that these are the hashes of a head's segments. Raises MalformedShare."""
    if len(hashes) != segments_of(head.count) or tip_of(hashes) != head.tip:
        raise MalformedShare("the segments are not those that the head was signed for")
