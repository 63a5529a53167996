"""Loopback pages for the tasks: /page/N has links and text, /blocked/ refuses every visitor with 403."""

import quiet_server

LINES = "".join(f"<p>Line {number} of this page. The number asked for is 42.</p>" for number in range(60))
BLOCK = "<title>Access denied</title><h1>Verification required</h1><p>Your network is blocked. Solve the captcha.</p>"


class Handler(quiet_server.Handler):
    def do_GET(self) -> None:
        if self.path.startswith("/blocked/"):
            self.reply_page(403, BLOCK)
        elif self.path.startswith("/page/"):
            number = self.path.rsplit("/", 1)[1]
            links = "".join(f'<a href="/page/{other}">page {other}</a> ' for other in range(5))
            # Exports must escape such words in a title, because trainers take them for media.
            title = f"Page {number} with a &lt;video&gt; and an &lt;audio&gt; player"
            self.reply_page(200, f"<title>{title}</title><h1>Page {number}</h1><nav>{links}</nav>{LINES}")
        else:
            self.reply_page(404, "<title>Not found</title><h1>Not found</h1>")

    def reply_page(self, status: int, html: str) -> None:
        self.reply(status, f"<!doctype html><meta charset=utf-8>{html}".encode(), "text/html; charset=utf-8")


def start() -> str:
    """Serves the pages until this process ends. Returns their URL."""
    return quiet_server.serve(Handler)
