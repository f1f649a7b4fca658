"""Source distributions, fetched by the Simple Repository API (PEP 503, 691) since pip would build what it downloads.

Only for releases without a wheel.  Index, proxy and certificates are those of
pip's configuration; credentials may stand in the index's URL, and go to that
server only.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO

import msgspec
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

from kvlint.bundle import BundleError
from kvlint.bundle.requirements import version_of
from kvlint.source.display import one_line

_ACCEPTED = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LARGEST_PAGE = 64 << 20
_LARGEST_ARCHIVE = 1 << 30
_SECONDS = 60
_PIECE = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")
_UNREADABLE = (OSError, ValueError, HTTPException)
_CREDENTIALS = "Authorization"
_PORTS = {"http": 80, "https": 443}


class SourceUnavailable(BundleError):
    """A source distribution that could not be fetched."""


@dataclass(frozen=True, slots=True)
class Link:
    """A file of an index; ``sha256`` is empty where the index tells none."""

    filename: str
    url: str
    sha256: str


def download_source(name: str, version: str, folder: Path, settings: Mapping[str, str]) -> Path | None:
    """The source distribution of a release, saved in ``folder``; None where no index lists one.

    ``settings`` are pip's.  Raises SourceUnavailable where an index does not
    answer, or the bytes are not those that it promises.
    """
    opener = _opener(settings)
    complaints: list[str] = []
    wanted = version_of(version)
    for index in _indexes(settings):
        try:
            found = links(*_read(opener, f"{index.rstrip('/')}/{canonicalize_name(name)}/", _LARGEST_PAGE))
        except _UNREADABLE as error:
            if not _knows_no_such_name(error):
                complaints.append(f"{_without_credentials(index)}: {_reason(error)}")
            continue
        for link in found:
            if _release_of(link.filename) == (canonicalize_name(name), wanted):
                return _save(opener, index, link, folder, f"{name}=={version}")
    if complaints:
        raise SourceUnavailable(
            f"{name}=={version}: no wheel of it exists, and its source distribution could not be looked up: "
            f"{one_line('; '.join(complaints))}; check pip's configuration (`pip config list`)"
        )
    return None


def links(body: bytes, kind: str, base: str) -> tuple[Link, ...]:
    """The files that an index page of content type ``kind``, read from ``base``, lists.

    Raises ValueError where the page is not what its type says.
    """
    if "json" in kind:
        try:
            files = msgspec.json.decode(body, type=_Page).files
        except msgspec.DecodeError as error:
            raise ValueError(f"the page is not JSON as PEP 691 has it: {error}") from error
        return tuple(
            Link(file.filename, urllib.parse.urljoin(base, file.url), file.hashes.get("sha256", "")) for file in files
        )
    parser = _Anchors()
    try:
        parser.feed(body.decode("utf-8", "replace"))
    except AssertionError as error:
        # What the standard library's parser raises at a declaration that it does not know.
        raise ValueError(f"the page is not HTML: {error}") from error
    return tuple(_link_of(href, base) for href in parser.found)


class _File(msgspec.Struct):
    filename: str
    url: str
    hashes: dict[str, str] = {}


class _Page(msgspec.Struct):
    """What is read of a project's page of PEP 691."""

    files: list[_File] = []


class _Anchors(HTMLParser):
    """Collects the targets of all anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the target of an anchor."""
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


def _link_of(href: str, base: str) -> Link:
    url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(base, href))
    filename = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
    key, _, digest = fragment.partition("=")
    return Link(filename, url, digest if key == "sha256" else "")


def _release_of(filename: str) -> tuple[str, object] | None:
    try:
        return parse_sdist_filename(filename)
    except InvalidSdistFilename:
        return None


def _indexes(settings: Mapping[str, str]) -> Iterator[str]:
    if settings.get("no-index", "0").lower() not in {"", "0", "no", "false", "off"}:
        return
    yield from settings.get("index-url", "").split()
    yield from settings.get("extra-index-url", "").split()


def _opener(settings: Mapping[str, str]) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=_certificates(settings))),
        _Redirects(),
    ]
    if proxy := settings.get("proxy"):
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    return urllib.request.build_opener(*handlers)


def _certificates(settings: Mapping[str, str]) -> str | None:
    for path in (settings.get("cert"), os.environ.get("REQUESTS_CA_BUNDLE"), os.environ.get("CURL_CA_BUNDLE")):
        if path and os.path.isfile(path):
            return path
    return None


def _request(url: str, index: str) -> urllib.request.Request:
    """A request for ``url``; its credentials, or those of ``index`` on the same server, go where servers read them."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https", "file"}:
        raise ValueError(f"{parts.scheme or 'no'} scheme; http, https or file is needed")
    headers = {"Accept": _ACCEPTED, "User-Agent": "kvlint"}
    request = urllib.request.Request(_without_credentials(url), headers=headers)
    holder = urllib.parse.urlsplit(index) if parts.username is None and _server(url) == _server(index) else parts
    if holder.username is not None:
        user, password = urllib.parse.unquote(holder.username), urllib.parse.unquote(holder.password or "")
        basic = "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")
        # urllib hands ordinary headers on to whatever server a redirect names.
        request.add_unredirected_header(_CREDENTIALS, basic)
    return request


def _server(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port: what has to be the same for credentials to be sent along."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects as urllib does, and keeps the credentials on the server that they are for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """The request that follows ``req``."""
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        held = req.unredirected_hdrs.get(_CREDENTIALS)
        if following is not None and held is not None and _server(newurl) == _server(req.full_url):
            following.add_unredirected_header(_CREDENTIALS, held)
        return following


def _read(opener: urllib.request.OpenerDirector, url: str, limit: int) -> tuple[bytes, str, str]:
    """Body, content type and final URL of a page; a folder on disk answers by its ``index.html``."""
    if url.startswith("file:"):
        url += "index.html"
    with opener.open(_request(url, url), timeout=_SECONDS) as answer:
        body = answer.read(limit + 1)
        if len(body) > limit:
            raise ValueError(f"the page is larger than {limit} bytes")
        return body, answer.headers.get("Content-Type", "text/html"), answer.url


def _save(opener: urllib.request.OpenerDirector, index: str, link: Link, folder: Path, about: str) -> Path:
    target = folder / os.path.basename(link.filename)
    digest = hashlib.sha256()
    try:
        with opener.open(_request(link.url, index), timeout=_SECONDS) as answer, target.open("xb") as file:
            while piece := answer.read(_PIECE):
                digest.update(piece)
                if file.tell() + len(piece) > _LARGEST_ARCHIVE:
                    raise ValueError(f"is larger than {_LARGEST_ARCHIVE} bytes")
                file.write(piece)
    except _UNREADABLE as error:
        raise SourceUnavailable(f"{about}: {one_line(link.filename)} cannot be fetched: {_reason(error)}") from error
    if _DIGEST.fullmatch(link.sha256) and digest.hexdigest() != link.sha256:
        raise SourceUnavailable(
            f"{about}: {one_line(link.filename)} has SHA-256 {digest.hexdigest()}, the index promises {link.sha256}; "
            "run again, and tell the index's owner if it stays so"
        )
    return target


def _knows_no_such_name(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code in {404, 410}
    return isinstance(getattr(error, "reason", error), FileNotFoundError)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError):
        return one_line(str(error.reason))
    return one_line(str(error)) or type(error).__name__


def _without_credentials(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
