"""A real HTTP server on the loopback address that answers by a function, for the tests of the web retrievers."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit


class Request(NamedTuple):
    method: str
    path: str
    query: dict
    headers: dict
    body: str

    @property
    def json(self):
        return json.loads(self.body)


class Answer(NamedTuple):
    body: str | bytes
    status: int = 200
    kind: str = "application/json"
    headers: tuple = ()
    delay: float = 0.0


class Site:
    """Serve what ``answer(request)`` returns: an Answer, a text, or anything that JSON holds; remember the requests."""

    def __init__(self, answer):
        self.requests = []
        self._answer = answer
        self._closing = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet: two would wait for each other

            def respond(self):
                parts = urlsplit(self.path)
                size = int(self.headers.get("content-length") or 0)
                request = Request(
                    self.command,
                    unquote(parts.path),
                    dict(parse_qsl(parts.query, keep_blank_values=True)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(size).decode("utf-8"),
                )
                site.requests.append(request)
                answer = site._answer(request)
                if not isinstance(answer, Answer):
                    answer = Answer(answer if isinstance(answer, str) else json.dumps(answer))
                site._closing.wait(answer.delay)
                body = answer.body if isinstance(answer.body, bytes) else answer.body.encode("utf-8")
                try:
                    self.send_response(answer.status)
                    self.send_header("content-type", answer.kind)
                    self.send_header("content-length", str(len(body)))
                    for name, value in answer.headers:
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                    self.wfile.flush()
                except OSError:  # the client has gone
                    self.close_connection = True

            do_GET = do_POST = respond

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request, client_address):
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
