"""Source distributions come by the Simple Repository API; a server on this machine speaks it."""

from __future__ import annotations

import hashlib
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kvlint.bundle import source_index
from kvlint.bundle.source_index import SourceUnavailable, download_source, links

SOURCE = b"a source distribution"
DIGEST = hashlib.sha256(SOURCE).hexdigest()


@dataclass
class Index:
    """Pages by path, as (content type, body), and the headers of the requests."""

    url: str = ""
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    state = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append((self.path, self.headers.get("Authorization")))
            kind, body = state.pages.get(self.path, ("", b""))
            if self.path in state.redirects:
                self.send_response(302)
                self.send_header("Location", state.redirects[self.path])
            else:
                self.send_response(200 if kind else 500 if "broken" in self.path else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def html(*anchors: str) -> tuple[str, bytes]:
    return "text/html", "".join(f'<a href="{anchor}">x</a><p>' for anchor in anchors).encode()


def settings(index: Index, path: str = "/simple") -> dict[str, str]:
    return {"index-url": index.url + path}


def test_links_of_a_json_page() -> None:
    body = json.dumps({"files": [{"filename": "p-1.tar.gz", "url": "../f/p-1.tar.gz", "hashes": {"sha256": DIGEST}}]})
    (link,) = links(body.encode(), "application/vnd.pypi.simple.v1+json", "https://a.example/simple/p/")
    assert (link.filename, link.url, link.sha256) == ("p-1.tar.gz", "https://a.example/simple/f/p-1.tar.gz", DIGEST)


def test_links_of_an_html_page() -> None:
    kind, body = html(f"/f/p-1%2Bx.tar.gz#sha256={DIGEST}", "p-2.zip#md5=1")
    found = links(body + b'<a name="here">no link</a>', kind, "https://a.example/simple/p/")
    assert [(link.filename, link.sha256) for link in found] == [("p-1+x.tar.gz", DIGEST), ("p-2.zip", "")]
    assert found[1].url == "https://a.example/simple/p/p-2.zip"


def test_it_is_fetched_and_verified(index: Index, tmp_path: Path) -> None:
    index.pages["/simple/p-q/"] = html(
        "/f/p_q-1.0-py3-none-any.whl", "/f/p_q-0.9.tar.gz", f"/f/p_q-1.0.tar.gz#sha256={DIGEST}"
    )
    index.pages["/f/p_q-1.0.tar.gz"] = ("application/gzip", SOURCE)
    found = download_source("P_q", "1.0", tmp_path, settings(index))
    assert found == tmp_path / "p_q-1.0.tar.gz"
    assert found.read_bytes() == SOURCE


def test_the_next_index_is_asked(index: Index, tmp_path: Path) -> None:
    index.pages["/extra/p/"] = html("p-1.0.tar.gz")
    index.pages["/extra/p/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    both = settings(index) | {"extra-index-url": f"{index.url}/more {index.url}/extra/"}
    assert download_source("p", "1", tmp_path, both) is not None
    assert [path for path, _ in index.requests] == ["/simple/p/", "/more/p/", "/extra/p/", "/extra/p/p-1.0.tar.gz"]


def test_no_index_has_it(index: Index, tmp_path: Path) -> None:
    index.pages["/simple/p/"] = html("p-0.9.tar.gz")
    assert download_source("p", "1", tmp_path, settings(index)) is None


def test_no_index_is_to_be_asked(index: Index, tmp_path: Path) -> None:
    assert download_source("p", "1", tmp_path, settings(index) | {"no-index": "true"}) is None
    assert index.requests == []


def test_an_index_that_fails_is_told(index: Index, tmp_path: Path) -> None:
    index.pages["/broken/p/"] = ("", b"")
    with pytest.raises(SourceUnavailable, match=r"could not be looked up: .*500"):
        download_source("p", "1", tmp_path, settings(index, "/broken"))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/vnd.pypi.simple.v1+json", b"{"),
        ("application/vnd.pypi.simple.v1+json", b"[]"),
        ("application/vnd.pypi.simple.v1+json", b'{"files": [{"url": "p-1.0.tar.gz"}]}'),
        ("application/vnd.pypi.simple.v1+json", b'{"files": [{"filename": 1, "url": "p-1.0.tar.gz"}]}'),
        ("application/vnd.pypi.simple.v1+json", b'{"files": [{"filename": "p-1.0.tar.gz", "url": "http://[/"}]}'),
        ("text/html", b"<![odd[x]]><a href='p-1.0.tar.gz'>"),
        ("text/html", b"<a href='http://[/'>"),
    ],
)
def test_a_page_that_is_none_is_told_and_the_next_index_asked(
    kind: str, body: bytes, index: Index, tmp_path: Path
) -> None:
    index.pages["/simple/p/"] = (kind, body)
    with pytest.raises(SourceUnavailable, match=r"could not be looked up: http://127\.0\.0\.1:\d+/simple: \w+"):
        download_source("p", "1.0", tmp_path, settings(index))
    index.pages["/extra/p/"] = html("p-1.0.tar.gz")
    index.pages["/extra/p/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    both = settings(index) | {"extra-index-url": f"{index.url}/extra"}
    assert download_source("p", "1.0", tmp_path, both) is not None


def test_an_address_that_http_cannot_ask_for(index: Index, tmp_path: Path) -> None:
    index.pages["/simple/p/"] = html(f"{index.url}/a b/p-1.0.tar.gz")
    with pytest.raises(SourceUnavailable, match=r"cannot be fetched: "):
        download_source("p", "1.0", tmp_path, settings(index))


def test_other_bytes_than_promised(index: Index, tmp_path: Path) -> None:
    index.pages["/simple/p/"] = html(f"p-1.0.tar.gz#sha256={'0' * 64}")
    index.pages["/simple/p/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    with pytest.raises(SourceUnavailable, match="the index promises 0000"):
        download_source("p", "1.0", tmp_path, settings(index))


def test_a_file_that_is_gone(index: Index, tmp_path: Path) -> None:
    index.pages["/simple/p/"] = html("p-1.0.tar.gz")
    with pytest.raises(SourceUnavailable, match=r"cannot be fetched: .*404"):
        download_source("p", "1.0", tmp_path, settings(index))


def test_an_endless_page_and_an_endless_file(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.pages["/simple/p/"] = html("p-1.0.tar.gz")
    index.pages["/simple/p/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    monkeypatch.setattr(source_index, "_LARGEST_ARCHIVE", 5)
    with pytest.raises(SourceUnavailable, match="larger than 5"):
        download_source("p", "1.0", tmp_path, settings(index))
    monkeypatch.setattr(source_index, "_LARGEST_PAGE", 5)
    with pytest.raises(SourceUnavailable, match="larger than 5"):
        download_source("p", "1.0", tmp_path, settings(index))


def test_credentials_go_into_the_header_and_into_no_message(index: Index, tmp_path: Path) -> None:
    url = index.url.replace("//", "//me:p%40ss@")
    index.pages["/simple/p/"] = html("p-1.0.tar.gz")
    index.pages["/simple/p/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    assert download_source("p", "1.0", tmp_path, {"index-url": f"{url}/simple"}) is not None
    assert index.requests[0] == ("/simple/p/", "Basic " + b64encode(b"me:p@ss").decode())
    with pytest.raises(SourceUnavailable) as caught:
        download_source("p", "1.0", tmp_path, {"index-url": f"{url}/broken"})
    assert "p%40ss" not in str(caught.value)


CREDENTIALS = "Basic " + b64encode(b"me:p@ss").decode()


def with_credentials(index: Index) -> dict[str, str]:
    return {"index-url": index.url.replace("//", "//me:p%40ss@") + "/simple"}


def test_credentials_go_along_for_files_of_the_same_server(index: Index, tmp_path: Path) -> None:
    index.pages["/simple/p/"] = html("../../f/p-1.0.tar.gz")
    index.pages["/f/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    download_source("p", "1.0", tmp_path, with_credentials(index))
    assert index.requests == [("/simple/p/", CREDENTIALS), ("/f/p-1.0.tar.gz", CREDENTIALS)]


def test_a_redirect_on_the_same_server_keeps_the_credentials(index: Index, tmp_path: Path) -> None:
    index.redirects["/simple/p/"] = "/moved/p/"
    index.pages["/moved/p/"] = html("p-1.0.tar.gz")
    index.pages["/moved/p/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    download_source("p", "1.0", tmp_path, with_credentials(index))
    assert [sent for _, sent in index.requests] == [CREDENTIALS] * 3


def test_no_other_server_gets_the_credentials(index: Index, tmp_path: Path) -> None:
    elsewhere = index.url.replace("127.0.0.1", "localhost")
    index.pages["/simple/p/"] = html(f"{elsewhere}/f/p-1.0.tar.gz")
    index.pages["/f/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    download_source("p", "1.0", tmp_path, with_credentials(index))
    index.redirects["/simple/q/"] = f"{elsewhere}/moved/q/"
    index.pages["/moved/q/"] = html("q-1.0.tar.gz")
    index.pages["/moved/q/q-1.0.tar.gz"] = ("application/gzip", SOURCE)
    download_source("q", "1.0", tmp_path, with_credentials(index))
    sent = [(path, bool(credentials)) for path, credentials in index.requests]
    assert sent == [
        ("/simple/p/", True), ("/f/p-1.0.tar.gz", False),
        ("/simple/q/", True), ("/moved/q/", False), ("/moved/q/q-1.0.tar.gz", False),
    ]  # fmt: skip


def test_a_redirect_elsewhere_and_a_file_at_home(index: Index, tmp_path: Path) -> None:
    index.redirects["/f/p-1.0.tar.gz"] = index.url.replace("127.0.0.1", "localhost") + "/g/p-1.0.tar.gz"
    index.pages["/simple/p/"] = html("/f/p-1.0.tar.gz")
    index.pages["/g/p-1.0.tar.gz"] = ("application/gzip", SOURCE)
    download_source("p", "1.0", tmp_path, with_credentials(index))
    assert [bool(sent) for _, sent in index.requests] == [True, True, False]


def test_a_proxy_is_used(index: Index, tmp_path: Path) -> None:
    index.pages["http://a.invalid/simple/p/"] = html("p-0.tar.gz")
    given = {"index-url": "http://a.invalid/simple", "proxy": index.url}
    assert download_source("p", "1.0", tmp_path, given) is None
    assert index.requests[0][0] == "http://a.invalid/simple/p/"


def test_a_folder_is_an_index_too(tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "p"
    folder.mkdir(parents=True)
    (folder / "index.html").write_bytes(html("p-1.0.tar.gz")[1])
    (folder / "p-1.0.tar.gz").write_bytes(SOURCE)
    given = {"index-url": f"file://{tmp_path}/nothing", "extra-index-url": f"file://{tmp_path}/simple"}
    assert download_source("p", "1.0", tmp_path, given) == tmp_path / "p-1.0.tar.gz"


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="ftp scheme"):
        download_source("p", "1.0", tmp_path, {"index-url": "ftp://a.example/simple"})


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="check pip's configuration"):
        download_source("p", "1.0", tmp_path, {"index-url": "http://127.0.0.1:1/simple"})


def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(b"")
    assert source_index._certificates({}) is None
    assert source_index._certificates({"cert": str(bundle)}) == str(bundle)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    assert source_index._certificates({"cert": "/nowhere"}) == str(bundle)
