"""The Emacs package in a real Emacs without a window, against a real daemon (U2)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.emacs import FOLDER

EMACS = shutil.which("emacs") or ""
pytestmark = pytest.mark.skipif(not EMACS, reason="there is no emacs on this machine")
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
HEAD = """
(require 'memd) (require 'cl-lib)
(defvar out nil)
(defvar messages nil)
(advice-add 'message :before (lambda (f &rest a) (when f (push (apply #'format-message f a) messages))))
(defun give (name value) (push (cons name value) out))
(defun settle (test)
  (let ((n 0)) (while (and (not (funcall test)) (< (cl-incf n) 600)) (accept-process-output nil 0.1))))
(defun said (words) (settle (lambda () (cl-some (lambda (m) (string-match-p words m)) messages))))
(defun shown (words)
  (settle (lambda () (and (get-buffer "*memd*")
                          (with-current-buffer "*memd*" (string-match-p words (buffer-string)))))))
(defun results () (with-current-buffer "*memd*" (buffer-substring-no-properties (point-min) (point-max))))
(defun press (label)
  (with-current-buffer "*memd*"
    (goto-char (point-min)) (search-forward label) (push-button (1- (point)))))
"""
TAIL = """
(give 'messages (vconcat (reverse messages)))
(with-temp-file (getenv "OUT") (setq buffer-file-coding-system 'utf-8) (insert (json-encode out)))
"""


@pytest.fixture
def emacs(home: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Runs Lisp in a fresh editor; what it put out, and its messages."""

    def run(code: str, **changes: str) -> Any:
        script, told = tmp_path / "t.el", tmp_path / "out.json"
        script.write_text(";; -*- coding: utf-8; lexical-binding: t -*-\n" + HEAD + code + TAIL)
        told.unlink(missing_ok=True)
        done = subprocess.run(
            [EMACS, "--batch", "-Q", "-L", str(FOLDER), "-l", str(script)],
            env={**home, "PATH": PATH, "OUT": str(told), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", **changes},
            capture_output=True,
            text=True,
            timeout=180,
            cwd=tmp_path,
            check=False,
        )
        assert told.exists(), done.stderr
        return json.loads(told.read_text())

    return run


def test_recall_shows_memories_with_buttons_U2(daemon: Any, emacs: Callable[..., Any]) -> None:
    with daemon.client() as client:
        id = client.remember("The lamp stands in the attic, it is grün.").record.id
    told = emacs("""
        (with-temp-buffer
          (insert "lamp ")
          (let ((here (current-buffer)))
            (goto-char 2)
            (cl-letf (((symbol-function 'read-string) (lambda (&rest a) (nth 3 a))))
              (call-interactively #'memd-recall))
            (shown "attic")
            (give 'results (results))
            (goto-char (point-max))
            (press "[copy id]")
            (give 'id (current-kill 0))
            (press "[insert]")
            (give 'text (with-current-buffer here (buffer-string)))
            (press "[why]")
            (shown "^Why")
            (give 'why (results))
            (memd-profile)
            (shown "^Profile")
            (give 'profile (results))))
    """)
    assert told["results"].startswith("lamp\n\nThe lamp stands in the attic, it is grün.\n  personal · ")
    assert told["id"] == id and told["text"].count("The lamp stands in the attic, it is grün.") == 1
    assert told["why"].startswith(f"Why {id}") and "attic" in told["profile"]


def test_a_region_is_remembered_in_the_pool_that_was_named_U2(daemon: Any, emacs: Callable[..., Any]) -> None:
    told = emacs("""
        (with-temp-buffer
          (insert "say: Die Tür ist grün, 100 % «sicher». end")
          (memd-remember-region 6 39 "personal")
          (said "memd remembers: Die Tür")
          (condition-case e (memd-remember-region 1 1) (user-error (give 'empty (cadr e)))))
    """)
    with daemon.client() as client:
        records = [(record.content, record.pool) for record in client.list().records]
    assert records == [("Die Tür ist grün, 100 % «sicher».", "personal")]
    assert told["messages"] == ["memd remembers: Die Tür ist grün, 100 % «sicher»."]
    assert "Select the text" in told["empty"]


def test_errors_are_messages_with_the_hint_U2(home: dict[str, str], emacs: Callable[..., Any]) -> None:
    told = emacs("""
        (memd-recall "lamp")
        (said "not running")
        (with-temp-buffer (insert (make-string 300000 ?x)) (memd-remember-region (point-min) (point-max)))
        (settle (lambda () (> (length messages) 1)))
        (memd-profile)
        (settle (lambda () (> (length messages) 2)))
        (condition-case e (memd-recall "  ") (user-error (give 'blank (cadr e))))
        (let ((memd-program "no-such-memd"))
          (condition-case e (memd-recall "lamp") (user-error (give 'missing (cadr e)))))
    """)
    assert told["messages"][0].startswith("memd: the daemon is not running; start it:")
    assert len(told["messages"]) == 3 and "memd up" in told["messages"][2]
    assert "few words" in told["blank"] and "no program no-such-memd" in told["missing"]


def test_the_file_compiles_without_a_warning_and_its_texts_are_in_form(tmp_path: Path) -> None:
    file = tmp_path / "memd.el"
    shutil.copy(FOLDER / "memd.el", file)
    strict = "(setq byte-compile-error-on-warn t)"
    for check in (
        f"(progn {strict} (unless (byte-compile-file {json.dumps(str(file))}) (kill-emacs 1)))",
        f"(checkdoc-file {json.dumps(str(file))})",
    ):
        done = subprocess.run([EMACS, "--batch", "-Q", "--eval", check], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
