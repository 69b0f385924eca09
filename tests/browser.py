"""A report as a browser opens it: headless Chromium, told to reach nothing but the file itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def needs_chromium():
    """Skip where there is no browser to open reports with."""
    return pytest.mark.skipif(
        CHROMIUM is None, reason="chromium is not installed: reports are opened with it"
    )


def opened(path: Path, folder: Path, *, script: str = "") -> tuple[str, list[str], list[str]]:
    """Open a page.

    Args:
        path: The HTML file.
        folder: For the browser's own files.
        script: Stands in the address behind `#`, for pages that read it.

    Returns:
        The document as it is after its scripts ran, lines of its console, and addresses it asked for.
    """
    log = folder / "net.json"
    found = subprocess.run(
        [
            str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
            f"--user-data-dir={folder / 'profile'}", "--window-size=1280,1000", "--virtual-time-budget=20000",
            "--enable-logging=stderr", f"--log-net-log={log}", "--dump-dom", f"{path.as_uri()}{script}",
        ],
        capture_output=True, text=True, check=True, timeout=180, env=os.environ | {"HOME": str(folder)},
    )  # fmt: skip
    console = [line for line in found.stderr.splitlines() if "CONSOLE" in line]
    return found.stdout, console, _asked(log.read_text())


def _asked(log: str) -> list[str]:
    """Addresses in the browser's network log that the page itself asked for."""
    found = set(re.findall(r'"url":"([^"]+)"', log))
    own = ("file:", "data:", "blob:", "chrome", "devtools:", "about:")
    # the browser asks its maker for updates and the like on its own account
    makers = ("google.com", "googleapis.com", "gvt1.com", "gstatic.com")
    outside = [url for url in sorted(found) if not url.startswith(own)]
    return [url for url in outside if not re.match(rf"https?://([^/]*\.)?({'|'.join(makers)})[:/]", url)]


def data_of(document: str) -> dict:
    """The JSON inside a report."""
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', document, re.DOTALL)[1]
    )
