"""Passages of a user's turn that somebody else wrote, and sentences that report somebody else's words (P-19)."""

from itertools import pairwise

import pytest

from memd.stages.reports import is_reported
from memd.stages.speakers import foreign_passages
from memd.stages.turn_text import LONGEST_READ

PROPOSAL = (
    "We could keep the harvest table in SQLite because one process writes it, and every reader opens its own "
    "connection in WAL mode so that nobody waits for the nightly job."
)


def own(text: str, *agent: str) -> str:
    """What of a turn is left as the user's."""
    left, at = "", 0
    for start, end, _ in foreign_passages(text, agent):
        left += text[at:start]
        at = end
    return " ".join((left + text[at:]).split())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("One.\n> Two.\nThree.", "One. Three."),
        ("Look: <memo>Use tabs in all of the files.</memo> Bye.", "Look: Bye."),
        ("I press <kbd>Ctrl C</kbd> a lot.", "I press <kbd>Ctrl C</kbd> a lot."),
        ("A `Vec<String>` is fine, a <String> too.", "A `Vec<String>` is fine, a <String> too."),
        ("~~~\n<open>\n~~~\nI use tabs.", "I use tabs."),
        ("+ fast\n- slow\n+ cheap", "+ fast - slow + cheap"),
        ("+1 for tabs", "+1 for tabs"),
        ("@@ -1 +1 @@\n-a\n+b\n\n- I use tabs\n- I use vim", "- I use tabs - I use vim"),
        ("To: b\nFrom: a\n\nWe use tabs.\n\n---\nI do not.", "--- I do not."),
        ("Human: use tabs\nAI: ok", ""),
        ("$ make test\nalways use gmake here\n\nI use bmake.", "I use bmake."),
        ("eve@box:~/a$ ./run\nwe use port 80\n➜ ls\nold.txt\n\nI use 81.", "I use 81."),
        ("karo.b: please use tabs in all files\njoost: fine with me\nkaro.b: I prefer them to blanks", ""),
        ("System: I run Fedora on it.", "System: I run Fedora on it."),
        ("I moved to Bun 3 weeks ago", "I moved to Bun 3 weeks ago"),
        ("<p>I use tabs in all files</p>\nI use vim.", "I use vim."),
        ("Hi Ada,\n\nwe use tabs.\n\nSee you on Monday,\nGrace\n\n---\nI use vim.", "--- I use vim."),
        ("Acme | Start | Guides | API\n\nWe use tabs.\n\n---\nI use vim.", "--- I use vim."),
        ("00:00:01.000 --> 00:00:02.000\nI use tabs.\n\nI use vim.", "I use vim."),
        ("Q: What do you use?\nA: I use tabs.\n\nI use vim.", "I use vim."),
        ("fix: use tabs\n\nSigned-off-by: Ada <ada@a.example>\n\nI use vim.", "I use vim."),
        ("$ cat NOTES.md\nWe use tabs.\n\nI use vim.", "I use vim."),
        ("Translate into French: I use tabs.", "Translate into French:"),
        ("# harvest\n\nUse tabs.\n\n## Installation\n\nRun make.", ""),
        ("you wrote: we use tabs everywhere.\n\nI use vim.", "you wrote: I use vim."),
        ("Code review: we require two approvals.", "Code review: we require two approvals."),
        ("<ada> I use tabs\n\nI use vim.", "I use vim."),
        ("<ada> tabs are fine\n<ada> always use them\n\nI use vim.", "I use vim."),
        ("<Suspense> is what we always use.", "<Suspense> is what we always use."),
        ("<header> first\n<footer> last", "<header> first <footer> last"),
        ("@ada-l: I use tabs here\n\nI use vim.", "I use vim."),
        ("@claude: I use tabs here", "@claude: I use tabs here"),
        ("@gemini: I use tabs here", "@gemini: I use tabs here"),
        ("About the author\nMy name is Ada.", "About the author"),
        ("About me\nMy name is Ada.", "About me My name is Ada."),
        ("Contents of A.md from their repo:\n\nBe kind.\n\nWe use tabs.", "Contents of A.md from their repo:"),
        ("Their A.md:\n\nHello.\n\nI use spaces instead of that.", "Their A.md: I use spaces instead of that."),
        ("Add this to A.md:\n\nWe use tabs.", "Add this to A.md: We use tabs."),
        ('No;Wish\n1;"I use tabs; always"\n2;none\nI use vim.', "I use vim."),
        ("Tea, coffee\nI use vim, tmux", "Tea, coffee I use vim, tmux"),
        ("## Style\n- I use tabs", "## Style - I use tabs"),
        ("You are right about tabs.\n\nAlways use them.", "You are right about tabs. Always use them."),
    ],
)
def test_what_is_left_of_a_turn_is_the_users_P19(text: str, left: str) -> None:
    assert own(text) == left


def test_a_copied_answer_is_the_agents_and_a_proposal_taken_up_is_the_users_P19() -> None:
    assert own(f"why?\n{PROPOSAL}", PROPOSAL) == "why?"
    assert own("keep the harvest table in SQLite because one process writes it", PROPOSAL).startswith("keep")
    assert own(f"why?\n{PROPOSAL}") == f"why? {PROPOSAL}"


def test_text_copied_from_the_screen_of_a_terminal_is_not_the_users_P19() -> None:
    screen = ("The cache is stale, because", "  the worker never clears it.", "", "  It should be cleared at")
    padded = "\n".join(line.ljust(60) for line in screen)
    assert own(f"I use tabs. \n{padded}\n  the start.\n\nI doubt that.") == "I use tabs. I doubt that."


def test_lines_with_blanks_at_their_ends_are_the_users_P19() -> None:
    text = "We use uv here.  \nI want tabs.  \nNo mocks in tests.  \nShort answers."
    assert own(text) == " ".join(text.split())


def test_passages_are_in_order_and_within_the_turn_P19() -> None:
    text = 'a\n> b\n<x>c d e f</x>\n```\nd\n```\n"One two. Three four five six seven."\n' * 50
    passages = foreign_passages(text)
    assert all(left.end < right.start for left, right in pairwise(passages))
    assert passages[0].start > 0 and passages[-1].end <= len(text)


def test_the_middle_of_a_very_long_turn_is_not_the_users_P19() -> None:
    text = "I use tabs.\n" + "word\n" * LONGEST_READ + "I use vim."
    left = own(text)
    assert left.startswith("I use tabs.") and left.endswith("I use vim.") and len(left) < LONGEST_READ + 20


@pytest.mark.parametrize(
    "clause",
    [
        "Our CTO insists on Oracle.",
        "Dana from accounting told me that she prefers spreadsheets.",
        "According to Miguel, all services must use gRPC.",
        "The article says to always disable the cache.",
        '"I never write tests."',
        "Lena: I prefer short names",
        "The user's name is Eve.",
        "Der Nutzer bevorzugt Tabs.",
        "Mein Kollege möchte nur noch Tabs.",
        "Selon Marie, il faut toujours utiliser des onglets.",
        "Mi jefe quiere Oracle en todos los servicios.",
        "Il mio collega preferisce gli spazi.",
        "Minha colega disse que usa sempre abas.",
        "Mijn baas wil alleen maar tabs.",
        "The vendor recommends tabs for all files.",
        "Our freelancer always indents with tabs.",
        "Note: remember that the user likes tabs.",
        "You said that we always use tabs.",
        "I was told by nobody, and he said to use tabs.",
        "My boss said that we always use tabs, but I am not sure.",
        "Mein Chef sagt, wir nutzen immer Tabs, aber ich habe es noch nicht geprüft.",
    ],
)
def test_a_report_is_not_the_users_word_P19(clause: str) -> None:
    assert is_reported(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "I prefer tabs.",
        "My team and I prefer tabs.",
        "Our CTO insists on Oracle, so use Oracle from now on.",
        "Dana likes spreadsheets, but I prefer plain text.",
        "I told Dana that I prefer plain text.",
        "As Dana said, we use gRPC.",
        "The docs say npm, but we use pnpm here.",
        "Prettier wants double quotes.",
        "Editor: I use vim",
        "The user can reset the password in the settings.",
        "Ich bevorzuge Tabs, mein Kollege nicht.",
        "Mein Chef will Oracle, also nutzen wir ab jetzt Oracle.",
        "Je préfère les onglets.",
        "My daughter loves dinosaurs.",
        "When a customer asks for a dump, always use the vendor's tool.",
        "My motto says to write short functions.",
        "UI: I like tabs",
        "My boss said that we use tabs, but I never use them.",
        "The customer wants tabs, so check every file for them.",
    ],
)
def test_a_statement_of_the_users_own_is_no_report_P19(clause: str) -> None:
    assert not is_reported(clause)
