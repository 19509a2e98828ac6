"""Open the workbench's page in Chromium, for tests and ``make bench``."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

LISTENER = Path(__file__).with_name("listener.js")
TIMEOUT_MS = 300_000  # a busy computer may be slow


class SilentHandler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_) -> None:
        pass


@contextmanager
def served(folder: Path, handles: type[SilentHandler] = SilentHandler) -> Iterator[str]:
    """Serve a folder on this computer. Yields its address, without a slash at the end."""
    handler = partial(handles, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def find_chromium() -> str | None:
    """Return the path of Chromium, or None if it isn't installed. Its shell without windows needs
    half the processor time.
    """
    names = "chromium-headless-shell", "chromium", "chromium-browser"
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium, without its sandbox."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


def open_bench(page: Page, address: str, until: str = "verdict") -> None:
    """Open the page, and wait for a part of the answer to its kernel."""
    page.set_default_timeout(TIMEOUT_MS)
    page.add_init_script(path=str(LISTENER))
    page.goto(address)
    wait_for_part(page, until)


def wait_for_part(page: Page, part: str) -> None:
    """Wait until the page has received a part of an answer."""
    page.wait_for_function("part => window.parts?.includes(part)", arg=part)
