"""Requests and replies about settings (U6). Values are TOML text."""

from __future__ import annotations

from typing import Literal

import msgspec

from .request_fields import Request


class ListSettings(Request, tag="settings", frozen=True, kw_only=True):
    """List all settings with their values and the sources of these."""


class PutSetting(Request, tag="put_setting", frozen=True, kw_only=True):
    """Write a setting to memd.toml, or remove it (no `value`), and apply it. The value is TOML or plain text."""

    name: str
    value: str | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting with its effective value. `waits`: the value in the file takes effect at the next start; `entries`: for
    a table, what each of its entries does. `label`: its name for people; `labels`: those of the entries."""

    name: str
    value: str
    default: str
    source: Literal["default", "file", "environment"]
    about: str
    waits: bool = False
    entries: dict[str, str] = {}
    label: str = ""
    labels: dict[str, str] = {}


class SettingList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `settings` and `put_setting`. `problem`: why memd ignores the file, or ""."""

    file: str
    settings: tuple[Setting, ...]
    problem: str = ""
