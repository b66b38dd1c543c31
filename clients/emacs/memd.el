;;; memd.el --- Search and extend the memory of memd  -*- lexical-binding: t; -*-

;; Author: The memd authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: convenience, tools
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; memd is a local memory for the tools of a developer.  This file runs the
;; program `memd' in the background, in the folder of the current buffer, so
;; that the memory of its project is searched too.
;;
;;   M-x memd-recall           search the memory; the default is the region or
;;                             the symbol at point
;;   M-x memd-remember-region  remember the region; with a prefix argument, in
;;                             a pool that you name
;;   M-x memd-why              show where a memory comes from
;;   M-x memd-profile          show the profile that agents get in this folder
;;
;; To install it, with the folder that this file is in:
;;
;;   (add-to-list 'load-path FOLDER)
;;   (require 'memd)

;;; Code:

(require 'json)
(require 'button)
(require 'subr-x)
(require 'thingatpt)

(defgroup memd nil
  "Search and extend the memory of memd."
  :group 'tools)

(defcustom memd-program "memd"
  "The program memd: a name in variable `exec-path', or a path."
  :type 'string)

(defcustom memd-limit 10
  "The largest number of memories that `memd-recall' shows."
  :type 'integer)

(defconst memd--buffer "*memd*"
  "The name of the buffer with results.")

(defvar memd-history nil
  "Questions of `memd-recall'.")

(defvar-local memd--origin nil
  "Marker of the place to which the button insert inserts a memory.")

(define-derived-mode memd-mode special-mode "memd"
  "Mode of the buffer with memories.
\\{memd-mode-map}"
  (setq-local truncate-lines nil)
  (setq-local word-wrap t))

(define-key memd-mode-map (kbd "w") #'memd-why)
(define-key memd-mode-map (kbd "n") #'forward-button)
(define-key memd-mode-map (kbd "p") #'backward-button)

;;;; Running the program

(defun memd--start (arguments input then)
  "Run memd with ARGUMENTS and the text INPUT, or nil for none.
THEN is called with its standard output, its standard error and its exit
status, in the buffer that was current."
  (let* ((output (generate-new-buffer " *memd output*"))
         (errors (generate-new-buffer " *memd errors*"))
         (origin (current-buffer))
         (coding-system-for-read 'utf-8-unix)
         (coding-system-for-write 'utf-8-unix)
         (process
          (condition-case nil
              (make-process
               :name "memd" :buffer output :stderr errors
               :connection-type 'pipe :noquery t
               :command (cons memd-program arguments)
               :sentinel
               (lambda (process _event)
                 (unless (process-live-p process)
                   (memd--end process output errors origin then))))
            (file-error
             (kill-buffer output)
             (kill-buffer errors)
             (user-error "There is no program %s: install memd, or set `memd-program'"
                         memd-program)))))
    (set-process-sentinel (get-buffer-process errors) #'ignore)
    ;; A program that ended before it read all has said why.
    (ignore-errors
      (when input
        (process-send-string process input))
      (process-send-eof process))
    process))

(defun memd--end (process output errors origin then)
  "Give the result of PROCESS in the buffers OUTPUT and ERRORS to THEN.
ORIGIN is the buffer that THEN is called in, if it still exists."
  (when-let ((pipe (get-buffer-process errors)))
    (while (accept-process-output pipe 0.1)))
  (let ((text (with-current-buffer output (buffer-string)))
        (problem (with-current-buffer errors (buffer-string))))
    (kill-buffer output)
    (kill-buffer errors)
    (with-current-buffer (if (buffer-live-p origin) origin (current-buffer))
      (funcall then text problem (process-exit-status process)))))

(defun memd--ask (arguments input then)
  "Run memd with ARGUMENTS, --json and the text INPUT.
THEN is called with the data of the answer, an alist.  An error of memd is
shown as a message with its hint."
  (memd--start
   arguments input
   (lambda (text problem _status)
     (let* ((answer (ignore-errors
                      (let ((json-array-type 'list)
                            (json-false nil))
                        (json-read-from-string text))))
            (err (alist-get 'error answer)))
       (cond ((alist-get 'ok answer)
              (funcall then (alist-get 'data answer))
              (dolist (warning (alist-get 'warnings answer))
                (message "memd: %s" warning)))
             (err (memd--report (alist-get 'message err) (alist-get 'hint err)))
             (t (memd--report (string-trim problem) nil)))))))

(defun memd--report (problem hint)
  "Show a PROBLEM of memd and the HINT to mend it, nil for none."
  (message "memd: %s%s" problem (if hint (concat "; " hint) "")))

(defun memd--print (arguments title)
  "Show the text that memd prints for ARGUMENTS, under TITLE."
  (memd--start
   arguments nil
   (lambda (text problem status)
     (if (zerop status)
         (memd--show (lambda () (insert title "\n\n" text)))
       (memd--report (string-join (split-string problem "\n" t) "; ") nil)))))

;;;; The buffer with memories

(defun memd--show (fill)
  "Show the buffer with memories after FILL has filled it."
  (let ((origin (if (derived-mode-p 'memd-mode) memd--origin (point-marker))))
    (with-current-buffer (get-buffer-create memd--buffer)
      (memd-mode)
      (setq memd--origin origin)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (funcall fill)
        (goto-char (point-min)))
      (display-buffer (current-buffer)))))

(defun memd--insert-hit (hit)
  "Insert the memory of HIT, an alist, with its buttons."
  (let* ((record (alist-get 'record hit))
         (id (alist-get 'id record))
         (text (alist-get 'content record))
         (start (point)))
    (insert text "\n  "
            (format "%s · %s · score %.2f  "
                    (alist-get 'pool record) (alist-get 'type record)
                    (or (alist-get 'score hit) 0)))
    (memd--insert-button "why" (lambda (_button) (memd-why id)))
    (memd--insert-button "insert" (lambda (_button) (memd--insert-at-origin text)))
    (memd--insert-button "copy id" (lambda (_button) (kill-new id) (message "%s" id)))
    (insert "\n\n")
    (put-text-property start (point) 'memd-id id)))

(defun memd--insert-button (label action)
  "Insert a button with LABEL and ACTION."
  (insert-text-button (concat "[" label "]") 'action action 'follow-link t)
  (insert " "))

(defun memd--insert-at-origin (text)
  "Insert TEXT where the question was asked."
  (let ((buffer (and memd--origin (marker-buffer memd--origin)))
        (place memd--origin))
    (unless buffer
      (user-error "The buffer that you asked from is closed"))
    (with-current-buffer buffer
      (save-excursion
        (goto-char place)
        (barf-if-buffer-read-only)
        (insert text)))))

;;;; Commands

(defun memd--default-question ()
  "Return the region, or the symbol at point, or nil."
  (if (use-region-p)
      (string-trim (buffer-substring-no-properties (region-beginning) (region-end)))
    (thing-at-point 'symbol t)))

;;;###autoload
(defun memd-recall (question)
  "Search the memory for QUESTION, and show what it has.
The default is the region, or the symbol at point."
  (interactive
   (let ((default (memd--default-question)))
     (list (read-string
            (if default (format "Recall (default %s): " default) "Recall: ")
            nil 'memd-history default))))
  (when (string-blank-p question)
    (user-error "Type a few words to search for"))
  (memd--ask
   (list "recall" "--json" "--limit" (number-to-string memd-limit) "--" question)
   nil
   (lambda (data)
     (let ((hits (alist-get 'hits data)))
       (if (null hits)
           (message "memd has no memory about: %s" question)
         (memd--show
          (lambda ()
            (insert question "\n\n")
            (mapc #'memd--insert-hit hits))))))))

;;;###autoload
(defun memd-remember-region (start end &optional pool)
  "Remember the text from START to END.
With a prefix argument, ask for the POOL: personal, project or a name.
Without one, memd chooses the pool."
  (interactive
   (list (region-beginning) (region-end)
         (and current-prefix-arg
              (completing-read "Pool: " '("personal" "project")))))
  (let ((text (string-trim (buffer-substring-no-properties start end)))
        (option (cond ((or (null pool) (string-empty-p pool)) nil)
                      ((member pool '("personal" "project")) (list (concat "--" pool)))
                      (t (list "--pool" pool)))))
    (when (string-empty-p text)
      (user-error "Select the text to remember"))
    (memd--ask
     `("remember" "--json" ,@option "-") text
     (lambda (data)
       (let ((record (alist-get 'record data)))
         (message (if (alist-get 'duplicate data) "memd already knows: %s" "memd remembers: %s")
                  (alist-get 'content record)))))))

;;;###autoload
(defun memd-why (id)
  "Show where the memory ID comes from.
In the buffer with memories, the default is the memory at point."
  (interactive
   (list (or (get-text-property (point) 'memd-id)
             (read-string "Id of the memory: "))))
  (memd--print (list "why" "--" id) (concat "Why " id)))

;;;###autoload
(defun memd-profile ()
  "Show the profile that an agent receives in this folder."
  (interactive)
  (memd--print '("profile") "Profile"))

(provide 'memd)

;;; memd.el ends here
