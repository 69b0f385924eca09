"""A page as one self-contained HTML file: plotly inside, no network, nothing from packets can run.

Names reach the page as JSON and become text nodes, never markup. The page's own policy allows just
the two scripts written here, by their digests, and no connection of any kind.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from pathlib import Path

from roce_pkt.errors import InputError
from roce_pkt.files import write_text
from roce_pkt.report.page import Page

_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>roce-pkt report</title>
<style>{style}</style>
</head>
<body>
<noscript><p>This report draws itself with JavaScript, which is switched off here.</p></noscript>
<main id="page"></main>
<script type="application/json" id="data">{data}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""


def plotly_js() -> str:
    """The plotting library's own code, from the installed package.

    Raises:
        InputError: plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError("a report needs plotly: pip install 'roce-pkt[plot]'") from error
    code: str = get_plotlyjs()
    return code


def document(page: Page) -> str:
    """The whole file as text.

    Args:
        page: What to show.

    Raises:
        InputError: plotly is not installed.
    """
    library, script, style = plotly_js(), _part("page.js"), _part("page.css")
    hashes = " ".join(f"'sha256-{_digest(code)}'" for code in (library, script))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    return _SHELL.format(policy=policy, style=style, data=_data(page), library=library, script=script)


def write_html(path: str | Path, page: Page, *, force: bool = False) -> None:
    """Write the report.

    Args:
        path: Where it shall be.
        page: What to show.
        force: Replace a file that is there.

    Raises:
        InputError: plotly is not installed, or the file exists or cannot be written.
    """
    write_text(path, document(page), force=force)


def _data(page: Page) -> str:
    """JSON that cannot end its script element, whatever the names in it."""
    text = json.dumps(page.as_json(), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
