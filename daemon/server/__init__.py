"""The process: socket, request dispatch and authorisation, start-up and shutdown."""
