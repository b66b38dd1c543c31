"""A remote's canonical name (P3).

Comes in: a remote's URL, in any form git takes. Goes out: `host/owner/name` in lower case, "" for what names no host: a
path on this machine, nothing. Invariant: user, password, port and protocol never matter, nor does `.git`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>\[[^\]]+\]|[\w.-]{2,}):(?P<path>.+)$")
"""`git@host:owner/name`; a host of one letter is a drive of Windows."""

_SAME_HOST = {
    "altssh.bitbucket.org": "bitbucket.org",
    "altssh.gitlab.com": "gitlab.com",
    "ssh.github.com": "github.com",
}
"""Hosts that serve ssh on the port of https, under another name."""


def canonical_remote(url: str) -> str:
    """`host/owner/name` in lower case of any form of a remote's URL; "" for a local path or nothing."""
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme.lower() == "file":
            return ""
    else:
        match = _SCP.match(url)
        if match is None or url.startswith((".", "/", "~")):
            return ""
        host, path = match["host"].strip("[]").lower(), match["path"]
    path = re.sub(r"/{2,}", "/", unquote(path)).strip("/").removesuffix(".git").strip("/")
    return f"{_SAME_HOST.get(host, host)}/{path}".lower() if host and path else ""
