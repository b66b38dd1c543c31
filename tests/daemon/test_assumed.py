"""What a profile would say after a change that the user only looks at (T1, U8)."""

import msgspec
import pytest

from memd.clients.python import Client
from memd.protocol.errors import Denied
from memd.protocol.profile import changed_lines
from tests.conftest import RunningDaemon


def test_a_preview_is_the_profile_after_the_correction_and_changes_nothing_T1_U8(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        id = client.remember("I always deploy the orchard service on Thursdays.").record.id
        client.remember("I prefer tabs in Go.")
        daemon.settle()
        before, last, profile = client.get(id), client.journal().last, client.profile()
        words = "I always deploy the orchard service on Wednesdays."
        right = client.correct(id, words, dry_run=True).record
        same = client.profile(assuming=(before,))
        assert changed_lines(profile, same) == ([], [])
        preview = client.profile(assuming=(msgspec.structs.replace(before, status="retired"), right))
        [gone], [new] = changed_lines(same, preview)
        assert "Thursdays" in gone and "Wednesdays" in new and not preview.due
        assert (client.journal().last, client.profile()) == (last, profile)
        client.correct(id, words)
        daemon.settle()
        assert changed_lines(profile, client.profile()) == ([gone], [new])


def test_a_pass_previews_nothing_A1(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        record = client.remember("I prefer tabs in Go.").record
        token = client.grant("reader", pools=("personal",)).token
    with Client(daemon.places, token=token) as reader, pytest.raises(Denied):
        reader.profile(assuming=(record,))
