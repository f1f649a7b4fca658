"""The subcommands of ``kvlint``: options in, a call of the engine, text and an exit status out.

Nothing here is imported for its own sake at start-up but click: what a command
needs it imports when it runs.
"""
