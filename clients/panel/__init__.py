"""The panel: a local web page that shows what memd knows, why, and what agents receive, and corrects it (U4).

Invariants: it is a client like any other and asks the daemon for everything (U8); only `memd panel` imports it; no
answer with data leaves it without the key of this run (`guard`); captured text is text, never HTML.
"""
