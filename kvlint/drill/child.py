"""A process of a drill: one side of it, or both.

Commands come by one descriptor of each side and messages go to another one, since the tree may print; so do the stacks
that faulthandler writes, of crashes and on SIGUSR1. `parent` starts it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvlint.drill.decode import DecodeSide
from kvlint.drill.messages import Unable
from kvlint.drill.prefill import PrefillSide
from kvlint.drill.side import Channel, Side
from kvlint.drill.threads import watch_threads
from kvlint.loading.errors import LoadError, UnforeseenUse, place_of
from kvlint.loading.processes import prepare_process
from kvlint.loading.tree import find_tree

SIDES: dict[str, type[Side[Any]]] = {"prefill": PrefillSide, "decode": DecodeSide}


def serve(side: type[Side[Any]], channel: Channel) -> None:
    """Be a side, and say so if that cannot be; no exception gets out."""
    root = ""
    try:
        with channel.signs_of_life():
            # What takes long to load is loaded while the other side does the same.
            for module in ("torch", "nixl._api"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)
            setup = channel.setup()
            root = str(find_tree(Path(setup.root)).package)
            loaded = side(setup, channel)
        loaded.run()
    except (LoadError, UnforeseenUse) as error:
        channel.tell(Unable(str(error)))
    except MemoryError:
        channel.tell(Unable("there is not enough memory for the pages"))
    except BaseException as error:
        last = "".join(traceback.format_exception_only(error)).strip()
        place = place_of(error, Path(root)) if root else None
        words = f"{place}: {last}" if place else f"{last}; this is a defect in kvlint, please report it"
        channel.tell(Unable(f"the {side.mode.lower()} side cannot go on: {words}", traceback.format_exc()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the process; it ends here, whatever threads and exit handlers the tree has left."""
    parser = argparse.ArgumentParser(description="One side of a drill, or both.")
    parser.add_argument("--side", action="append", required=True, metavar="NAME:IN:OUT", help="a side's descriptors")
    parser.add_argument("--stacks", type=int, default=2, metavar="FD", help="where stacks go")
    options = parser.parse_args(arguments)
    _prepare(options.stacks)
    threads = []
    for given in options.side:
        name, reading, writing = given.split(":")
        channel = Channel(int(reading), int(writing))
        for descriptor in (reading, writing):
            os.set_inheritable(int(descriptor), False)
        threads.append(threading.Thread(target=serve, args=(SIDES[name], channel), name=name, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)


def _prepare(stacks: int) -> None:
    prepare_process(stacks)
    # Ctrl-C is the parent's business: it ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_threads()


if __name__ == "__main__":
    main()
