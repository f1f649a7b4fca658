"""Stand-ins for pyzmq and requests: sockets without a wire, and the bootstrap server's answers without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Never
from urllib.parse import parse_qsl, urlsplit

from kvlint.loading.errors import refuse
from kvlint.loading.hooks import Frame, Hooks
from kvlint.loading.stand_in import StandIn, StandInModule

#: The constants that backends name. Each is distinct, and none reaches libzmq.
_CONSTANTS = (
    *("DEALER", "PAIR", "PUB", "PULL", "PUSH", "REP", "REQ", "ROUTER", "SUB", "EVENT_DISCONNECTED", "IPV6", "LINGER"),
    *("MAX_SOCKETS", "NOBLOCK", "POLLIN", "POLLOUT", "RCVBUF", "RCVHWM", "RCVTIMEO", "RECONNECT_IVL", "SNDBUF"),
    *("SNDHWM", "SNDTIMEO", "TCP_KEEPALIVE", "TCP_KEEPALIVE_CNT", "TCP_KEEPALIVE_IDLE", "TCP_KEEPALIVE_INTVL"),
)
_FIRST_PORT = 50001


class ZMQError(Exception):
    """As zmq.ZMQError: never raised here."""


class Again(ZMQError):
    """As zmq.Again: a monitor socket has nothing to report."""


class Socket(StandIn):
    """A socket that hands what is sent to the wire, and receives nothing: only the listener's does."""

    def __init__(self, wire: Wire) -> None:
        super().__init__("zmq.Socket", closed=False)
        self._wire = wire
        self._endpoint = ""

    def setsockopt(self, option: int, value: object) -> None:
        """Options change nothing here."""

    setsockopt_string = set = setsockopt

    def connect(self, endpoint: str) -> None:
        """Keep where it leads."""
        self._endpoint = endpoint

    def bind(self, endpoint: str) -> None:
        """Be the listener's socket of the manager that is being built."""
        self._endpoint = endpoint
        self._wire.bound.append(self)

    def bind_to_random_port(self, address: str, **_: object) -> int:
        """Be the listener's socket, at a port that nobody opens."""
        port = _FIRST_PORT + len(self._wire.bound)
        self.bind(f"{address}:{port}")
        return port

    def send_multipart(self, frame: Any, flags: int = 0, **_: object) -> None:
        """Hand a frame to the wire."""
        del flags
        self._wire.send(self._endpoint, list(frame))

    def recv_multipart(self, flags: int = 0, **_: object) -> Frame:
        """The next frame for the listener, if this is its socket."""
        del flags
        if self._wire.listening is not self:
            refuse("zmq.Socket.recv_multipart", f"the socket {self._endpoint or 'without an address'} was read")
        return self._wire.hooks.receive()

    def get_monitor_socket(self, events: int | None = None, **_: object) -> Monitor:
        """A monitor that never has anything to report."""
        del events
        return Monitor()

    def close(self, linger: int | None = None) -> None:
        """Be closed."""
        del linger
        self.closed = True


def bind_socket(context: Any, socket_type: int, host: str | None = None) -> tuple[int, Socket]:
    """As get_zmq_socket_on_host() of sglang/srt/utils/common.py before release 0.5.10: a port, and its socket."""
    socket: Socket = context.socket(socket_type)
    return socket.bind_to_random_port(f"tcp://{host}"), socket


class Monitor(StandIn):
    """The monitor of a socket that stays connected."""

    def __init__(self) -> None:
        super().__init__("zmq.Socket (a monitor)")

    def recv_multipart(self, flags: int = 0) -> Never:
        """Nothing was reported.

        Raises:
            Again: Always.
        """
        del flags
        raise Again("Resource temporarily unavailable")

    def close(self, linger: int | None = None) -> None:
        """Be closed."""


class Wire:
    """The sockets of one tree.

    Args:
        hooks: Told of what is sent, asked for what is received.

    Attributes:
        bound: The sockets that were bound, in order.
        listening: The one whose frames come from hooks.receive.
        capture: Where sent frames go instead of to hooks.sent, or None.
    """

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.bound: list[Socket] = []
        self.listening: Socket | None = None
        self.capture: list[Frame] | None = None

    def send(self, endpoint: str, frame: Frame) -> None:
        """Take a frame that was sent."""
        if self.capture is None:
            self.hooks.sent(endpoint, frame)
        else:
            self.capture.append(frame)

    def captured(self, action: Callable[[], object]) -> list[Frame]:
        """The frames that an action sends."""
        before, self.capture = self.capture, []
        try:
            action()
            return self.capture
        finally:
            self.capture = before

    def module(self) -> StandInModule:
        """The module `zmq` of this wire."""
        wire = self

        class Context(StandIn):
            """A context; its sockets belong to the wire."""

            def __init__(self, *_: object) -> None:
                super().__init__("zmq.Context", underlying=id(self))

            def setsockopt(self, option: int, value: object) -> None:
                """Options change nothing here."""

            set = setsockopt

            def socket(self, socket_type: int) -> Socket:
                """A socket of the wire."""
                del socket_type
                return Socket(wire)

            def term(self) -> None:
                """Nothing is to be ended."""

        known: dict[str, object] = {name: number for number, name in enumerate(_CONSTANTS, 1000)}
        known |= {"Context": Context, "Socket": Socket, "ZMQError": ZMQError, "Again": Again, "SocketType": int}
        known["error"] = StandInModule("zmq.error", {"ZMQError": ZMQError, "Again": Again})
        return StandInModule("zmq", known)


class Response(StandIn):
    """An answer of the bootstrap server: it has none but good ones."""

    def __init__(self, body: Mapping[str, object]) -> None:
        super().__init__("requests.Response", status_code=200, text="OK", json=lambda: dict(body))


class BootstrapServer:
    """Answers what a bootstrap server with one registered prefill rank would answer.

    Args:
        server_info: Makes the answer about the whole server out of what the rank registered; it is the tree's own
            class that says which fields that answer has.

    Source: the handlers of CommonKVBootstrapServer in sglang/srt/disaggregation/common/conn.py, release 0.5.14.
    """

    def __init__(self) -> None:
        self.registered: dict[str, object] = {}
        self.server_info: Callable[[Mapping[str, object]], Mapping[str, object]] = dict

    def put(self, url: str, json: Mapping[str, object] | None = None, **_: object) -> Response:
        """A prefill rank registers."""
        if urlsplit(url).path != "/route":
            refuse("requests.put", f"the address {url} was asked")
        self.registered.update(json or {})
        return Response({})

    def get(self, url: str, **_: object) -> Response:
        """A decode rank asks for the server, or for one of its ranks."""
        parts = urlsplit(url)
        if parts.path != "/route":
            refuse("requests.get", f"the address {url} was asked")
        if all(value == "-1" for _, value in parse_qsl(parts.query)):
            return Response(self.server_info(self.registered))
        return Response({"rank_ip": self.registered["rank_ip"], "rank_port": self.registered["rank_port"]})

    def module(self) -> StandInModule:
        """The module `requests` that asks this server."""
        server = self

        class Session(StandIn):
            """A session with this server."""

            def __init__(self) -> None:
                super().__init__("requests.Session", get=server.get, put=server.put)

            def mount(self, prefix: str, adapter: object) -> None:
                """Adapters change nothing here."""

        known = {
            "get": server.get,
            "put": server.put,
            "Session": Session,
            "adapters": StandInModule("requests.adapters", {"HTTPAdapter": HTTPAdapter}),
            "exceptions": StandInModule("requests.exceptions"),
        }
        return StandInModule("requests", known)


class HTTPAdapter(StandIn):
    """As requests.adapters.HTTPAdapter: it holds nothing here."""

    def __init__(self, **_: object) -> None:
        super().__init__("requests.adapters.HTTPAdapter")
