"""Loads the real NIXL backend of an SGLang tree, without torch, CUDA, NIXL, ZMQ or a network, and builds its objects.

To load a tree is to run its code, with the rights of the process. Nothing in kvlint does so but the child processes of
`kvlint explore` and `kvlint drill`. load_backend() is for the former; the latter has a loading of its own, with fewer
stand-ins, out of the same parts.

    backend = load_backend(root, substitutes={"threading": …, "time": …, "queue": …})
    backend.hooks.receive = …          # the listener's next frame; may raise
    backend.hooks.transfer_state = …   # "DONE", "PROC" or "ERR" for a Transfer
    sender = backend.make_sender(7)
    backend.metadata_frames(7, pages=2)
    backend.listener.run(); backend.begin(sender, 2); backend.send(sender, 0, last=False)
    backend.workers[0].run(); sender.poll()

See Backend for what the release's scheduler does with a sender.
"""

from kvlint.loading.backend import Backend
from kvlint.loading.captured import CapturedThread
from kvlint.loading.construction import load_backend
from kvlint.loading.errors import LoadError, UnforeseenUse
from kvlint.loading.hooks import Frame, Hooks, Transfer
from kvlint.loading.tree import Tree, find_tree

__all__ = [
    "Backend",
    "CapturedThread",
    "Frame",
    "Hooks",
    "LoadError",
    "Transfer",
    "Tree",
    "UnforeseenUse",
    "find_tree",
    "load_backend",
]
