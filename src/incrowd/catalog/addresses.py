r"""File paths and URLs as an owner writes them: what no file and no server can be meant by.

A complaint shows no part of a URL, since what looks like its host may be the end of a password:

>>> wrong_url("postgresql://ana:s3cr@et@host/db")
'its user or password holds an @; write it as %40'
>>> wrong_path("a" * 300), wrong_path("people.csv")
('the path is longer than one may be', '')
"""

from __future__ import annotations

import os
import re

from incrowd.catalog.declaration import fault

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?")
_LONGEST_NAME, _LONGEST = 255, 4095
"""Bytes that a name, and a path of names, may take where files are usually kept."""
_BESIDE = 30
"""Bytes that the names of the files beside a ledger have more than its own."""


def is_url(address: str) -> bool:
    """Whether this is meant as a URL: a scheme, a colon and a slash."""
    return _SCHEME.match(address) is not None


def wrong_path(path: str, spare: int = 0) -> str:
    """What is wrong with a file's path, as a clause; empty if there may be such a file.

    spare: how many bytes longer the names of files beside it are.
    """
    try:
        letters = os.fsencode(path)
    except UnicodeEncodeError:
        return "the path holds half a character (a lone surrogate)"
    if b"\0" in letters:
        return "the path holds the character NUL"
    longest = max(map(len, letters.split(b"/")))
    if len(letters) + spare > _LONGEST or longest + spare > _LONGEST_NAME:
        return "the path is longer than one may be"
    return ""


def wrong_url(url: str) -> str:
    """What is wrong with a server's URL, as a clause that shows nothing of it; empty if nothing is."""
    server = _SERVER.match(url)
    if server is None:
        return "expected a URL such as postgresql://role@host/database"
    user, _, hosts = server[1].rpartition("@")
    if "@" in user:
        return "its user or password holds an @; write it as %40"
    if not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        return (
            "the port of its host is no number; if a password holds letters such as / # ? or :, write them "
            "as %2F %23 %3F %3A"
        )
    return ""


def server_url(url: str) -> str:
    """A server's URL."""
    if wrong := wrong_url(url):
        raise fault(wrong)
    return url


def local_path(path: str) -> str:
    """The path of a file of rows."""
    if is_url(path):
        raise fault("expected the path of a local file, not a URL; copy the file here and name the copy")
    if wrong := wrong_path(path):
        raise fault(wrong)
    return path


def wrong_account(place: str) -> str:
    """What is wrong with the path or URL of a ledger or of an anchor, as a clause; empty if nothing is."""
    return wrong_url(place) if "://" in place else wrong_path(place, _BESIDE)


def account_place(place: str) -> str:
    """The path or URL of a ledger or of an anchor."""
    if wrong := wrong_account(place):
        raise fault(wrong)
    return place
