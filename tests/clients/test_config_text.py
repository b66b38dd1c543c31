"""Entries go into other programs' texts and out again; comments and order stay (U2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from memd.clients.hooks.config_text import JsonText, YamlText
from memd.protocol.errors import StoreError

COMMENTED = """// Settings of the editor
{
    // what I like
    "theme": "dark", // at night
    "servers": {
        "other": {"command": "x"}, // mine
    },
    /* the end */
}
"""
ENTRY = {"command": "memd", "args": ["mcp"]}


def test_comments_and_trailing_commas_stay() -> None:
    text = JsonText(COMMENTED.encode(), Path("settings.json"))
    text.put(("servers", "memd"), ENTRY)
    assert text.get("servers", "memd") == ENTRY and text.get("servers", "other") == {"command": "x"}
    assert all(line in text.text for line in COMMENTED.splitlines())
    text.put(("hooks", "stop"), [])
    text.add(("hooks", "stop"), {"command": "one"})
    text.add(("hooks", "stop"), {"command": "one"})
    assert text.get("hooks", "stop") == [{"command": "one"}]
    text.drop(("hooks", "stop"), lambda item: item["command"] == "one")
    text.drop(("servers", "memd"))
    assert text.value == JsonText(COMMENTED.encode(), Path()).value
    assert "// mine" in text.text and "hooks" not in text.text


@pytest.mark.parametrize(
    "broken", ["[]", "{", '{"a" 1}', '{"a": 1 "b": 2}', "{'a': 1}", "{} {}", '{"a": tru}', "{" * 3000]
)
def test_what_is_no_object_is_refused(broken: str) -> None:
    with pytest.raises(StoreError, match="is not JSON"):
        JsonText(broken.encode(), Path("x.json"))


def test_an_entry_in_a_value_of_another_kind_is_refused() -> None:
    text = JsonText(b'{"servers": [1], "hooks": {"stop": {}}}', Path("x.json"))
    with pytest.raises(StoreError, match=r"servers in x\.json is not an object"):
        text.put(("servers", "memd"), ENTRY)
    with pytest.raises(StoreError, match=r"hooks\.stop in x\.json is not a list"):
        text.add(("hooks", "stop"), ENTRY)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
    max_leaves=8,
)


@given(
    value=st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    servers=st.none() | st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    indent=st.sampled_from([None, 1, 4, "\t"]),
)
def test_in_and_out_leaves_the_value(value: dict[str, Any], servers: dict[str, Any] | None, indent: Any) -> None:
    value = {**value, **({"servers": servers} if servers else {})}
    text = JsonText(json.dumps(value, indent=indent).encode(), Path())
    text.put(("servers", "memd"), ENTRY) if isinstance(value.get("servers", {}), dict) else None
    text.add(("events", "stop"), ENTRY)
    assert text.value == json.loads(text.text)
    text.drop(("servers", "memd")) if isinstance(value.get("servers", {}), dict) else None
    text.drop(("events", "stop"))
    assert json.loads(text.text) == value


CONFIG = """# mine
name: Local
models:
  # the small one
  - name: one
    model: two
"""


def test_an_item_of_a_YAML_list_goes_in_and_out() -> None:
    text, item = YamlText(CONFIG.encode(), Path("config.yaml")), ["name: memd", "command: memd"]
    text.add("mcpServers", item)
    text.add("models", ["name: three"])
    value = YAML(typ="safe", pure=True).load(text.text)  # pyright: ignore[reportUnknownMemberType]
    assert value["mcpServers"] == [{"name": "memd", "command": "memd"}]
    assert [model["name"] for model in value["models"]] == ["three", "one"]
    text.drop("mcpServers", lambda item: item["name"] == "memd")
    text.drop("models", lambda item: item["name"] == "three")
    assert text.text == CONFIG
    text.set("notifications", "true")
    text.unset("notifications")
    assert text.text == CONFIG


def test_a_YAML_list_in_one_line_is_refused() -> None:
    with pytest.raises(StoreError, match="one item a line"):
        YamlText(b"read: [a.md]\n", Path("x.yml")).add("read", ["b.md"])
    with pytest.raises(StoreError, match="is not YAML"):
        YamlText(b"- a\n", Path("x.yml"))
