"""Courses from Markdown and YAML files: verbatim sections, questions with keywords, errors with the line (O3)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.clients.importers.course_file import PASSAGE, markdown_course, parts_of, read_course, yaml_course
from memd.protocol.courses import SECTION_LIMIT
from memd.protocol.errors import InvalidRequest

MARKDOWN = """# Lighthouse

Who reads this keeps the light.

## Tower

### Lamp

The lamp burns rapeseed oil.

```
# not a heading
Q: not a question
```

#### Filling

It is filled on Fridays.

Q: What does the lamp burn?
A: rapeseed oil, oil

Stairs
------

There are 212 steps.
"""

YAML = """textbook:
  title: Lighthouse
  perspective: safety
  chapters:
    - title: Tower
      sections:
        - title: Lamp
          text: |
            The lamp burns rapeseed oil.

            It is filled on Fridays.
      test_questions:
        - question: What does the lamp burn?
          answer_keywords: ["rapeseed oil", 12]
"""


def test_a_markdown_file_is_a_course_O3() -> None:
    course = markdown_course(MARKDOWN, "light.md")
    assert course.title == "Lighthouse"
    told = [
        (chapter.title, section.heading, section.text) for chapter in course.chapters for section in chapter.sections
    ]
    assert told == [
        ("Lighthouse", "", "Who reads this keeps the light."),
        ("Tower", "Lamp", "The lamp burns rapeseed oil.\n\n```\n# not a heading\nQ: not a question\n```"),
        ("Tower", "Lamp > Filling", "It is filled on Fridays."),
        ("Stairs", "", "There are 212 steps."),
    ]
    (question,) = course.chapters[1].questions
    assert (question.question, question.keywords) == ("What does the lamp burn?", ("rapeseed oil", "oil"))


def test_a_yaml_file_is_a_course_O3() -> None:
    course = yaml_course(YAML, "light.yaml")
    (chapter,) = course.chapters
    (section,) = chapter.sections
    assert (course.title, chapter.title, section.heading) == ("Lighthouse", "Tower", "Lamp")
    assert section.text == "The lamp burns rapeseed oil.\n\nIt is filled on Fridays."
    assert chapter.questions[0].keywords == ("rapeseed oil", "12")
    assert yaml_course("title: A\nchapters:\n  - title: B\n    sections:\n      - text: C\n", "a.yaml").title == "A"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("## Tower\n", 1, "a heading before the title"),
        ("Text.\n", 1, "text before the title"),
        ("# A\n\nText.\n\n# B\n", 5, "a second title"),
        ("# A\n\nQ: Who?\n\nMore text.\n", 5, "must be its answer"),
        ("# A\n\nQ: Who?\n\n## B\n", 3, "the question has no answer"),
        ("# A\n\nQ: Who?\nQ: What?\nA: it\n", 3, "the question has no answer"),
        ("# A\n\nA: him\n", 3, "an answer without a question"),
        ("# A\n\nQ: Who?\nA: , ,\n", 4, "no keywords"),
        ("# A\n\nQ:\nA: him\n", 3, "the question is empty"),
        ("# A\n\n##\n", 3, "the heading is empty"),
        (f"# A\n\n## {'b' * 201}\n", 3, "201 characters"),
        (f"# A\n\nQ: {'b' * 501}\nA: c\n", 4, "too long"),
        ("", 1, "no title"),
    ],
)
def test_a_bad_markdown_file_is_refused_with_the_line_O3(text: str, line: int, problem: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        markdown_course(text, "light.md")
    assert f"light.md, line {line}: " in refused.value.message and problem in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("title: A\nchapters:\n  - title: [\n", 4, ""),
        ("- a\n", 1, "must have the keys"),
        ("title: A\nchapter:\n  - B\n", 2, "'chapter' is unknown"),
        ("title: A\nchapters: B\n", 2, "`chapters` must be a list"),
        ("title: A\nchapters:\n  - B\n", 3, "a chapter must have the keys"),
        ("title: A\nchapters:\n  - title: B\n    sections:\n      - title: C\n", 5, "`text` must be a text"),
        ("title: 5\nchapters:\n  - title: B\n", 1, "`title` must be a text"),
        ("title: A\nchapters:\n  - title: B\n    test_questions:\n      - question: C\n", 5, "`answer_keywords`"),
        ("title: A\ntitle: B\n", 2, "duplicate key"),
    ],
)
def test_a_bad_yaml_file_is_refused_with_the_line_O3(text: str, line: int, problem: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        yaml_course(text, "light.yaml")
    assert f"light.yaml, line {line}: " in refused.value.message and problem in refused.value.message


def test_a_file_that_is_no_course_is_refused_O3(tmp_path: Path) -> None:
    file = tmp_path / "light.md"
    with pytest.raises(InvalidRequest, match="can't be read"):
        read_course(file)
    file.write_bytes(b"# A\n\nB\xff\n")
    with pytest.raises(InvalidRequest, match="line 3: it is not valid UTF-8"):
        read_course(file)
    file.write_text("# A\n\n## B\n\nQ: C?\nA: D\n")
    with pytest.raises(InvalidRequest, match="no text"):
        read_course(file)


PARAGRAPHS = st.lists(st.text("ab .\n", min_size=1, max_size=900), min_size=1, max_size=6)


@given(PARAGRAPHS)
def test_a_long_section_is_divided_and_loses_no_word_O3(paragraphs: list[str]) -> None:
    text = "\n\n".join(paragraphs)
    parts = list(parts_of(text))
    assert all(0 < len(part) <= SECTION_LIMIT for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert parts == [text] or len(text) > PASSAGE


def test_prose_is_divided_at_sentences_and_code_stays_whole_with_what_introduces_it_O3() -> None:
    sentences = [
        f"Rule {number} is about the {name} of the tower and nothing else at all."
        for number, name in enumerate(("lamp", "stairs", "boat", "horn", "well", "roof"))
    ]
    code = "```\n" + "\n".join(f"turn --valve {number}" for number in range(20)) + "\n```"
    parts = list(parts_of(" ".join(sentences) + "\n\nTo start it:\n\n" + code))
    assert parts == [" ".join(sentences[:3]), " ".join(sentences[3:]), f"To start it:\n\n{code}"]


def test_a_private_key_is_redacted_before_a_section_is_divided_O3_W5() -> None:
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + f"{number:012}" for number in range(20))
    for fence in ("", "```\n", "~~~\n"):
        key = f"{fence}-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n{fence}".strip()
        parts = "\n".join(parts_of(f"The key of the tower.\n\n{key}\n\nKeep it."))
        assert "MIIEvQ" not in parts and "[redacted:" in parts and "Keep it." in parts


@pytest.mark.parametrize("keyword", ["1.50", "true", "null", "0x10", "[a, b]"])
def test_a_keyword_that_yaml_does_not_read_as_a_text_is_refused_with_its_line_O3(keyword: str) -> None:
    book = "title: Tower\nchapters:\n- title: Lamp\n  sections: [{text: It burns.}]\n  test_questions:\n"
    with pytest.raises(InvalidRequest, match=r"line 7: the keyword .* is no text"):
        yaml_course(f"{book}  - question: What?\n    answer_keywords: [{keyword}]\n", "tower.yaml")
