"""What a client of the protocol alone takes of a partition (H2, H3)."""

import subprocess
import sys

import pytest

from memd.protocol.partition_acceptance import KnownPartition, accept
from memd.protocol.shared_lines import MalformedShare, ShareMark, of_repository, verified_head
from tests.daemon.shared_authors import MARK, Author

MARKS = (of_repository(MARK.root, MARK.remote),)


def author(lines: int = 10, mark: ShareMark = MARK) -> Author:
    made = Author(1, "Ada", mark)
    for number in range(lines):
        made.add(f"The service number {number} listens on its own port.")
    return made


@pytest.mark.parametrize(("most", "fresh"), [(None, 10), (4, 4), (0, 0), (99, 10)])
def test_a_caller_limits_the_fresh_lines_of_one_call_H2(most: int | None, fresh: int) -> None:
    ada = author()
    head = verified_head(ada.head())
    accepted = accept(KnownPartition(), head, ada.hashes(), ada.segments(), MARKS, most=most)
    assert (accepted.fresh, accepted.left) == (ada.lines[:fresh], 10 - fresh)
    assert bool(accepted.wanted) == (fresh < 10)


def test_a_partition_of_another_mark_is_refused_H3() -> None:
    ada = author(mark=ShareMark(remote="hub.example.org/orchard"))
    head = verified_head(ada.head())
    with pytest.raises(MalformedShare, match="another repository"):
        accept(KnownPartition(), head, ada.hashes(), ada.segments(), MARKS)
    named = (of_repository("", "hub.example.org/orchard"),)
    assert len(accept(KnownPartition(), head, ada.hashes(), ada.segments(), named).fresh) == 10


def test_lines_and_passes_load_no_cryptography_before_they_are_verified() -> None:
    modules = "memd.protocol.passes, memd.protocol.partition_acceptance, memd.protocol.shared_lines"
    code = f"import sys, {modules}; sys.exit(bool({{'jwt', 'cryptography'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
