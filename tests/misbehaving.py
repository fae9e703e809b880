"""A server on this machine that misbehaves as it is told to; for tests, loaded with runpy.

    with Server() as server:
        server.script("/v1/chat/completions", status(429, headers={"retry-after": "1"}), chat("fine"))
        ... server.url + "/v1/chat/completions" ...
        server.seen[0].json()

Each path has a list of behaviours, one for each request in turn; the last one is repeated. ``server.seen`` holds the requests.
"""

import asyncio
import gzip
import json
import threading
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit


class Seen(NamedTuple):
    method: str
    path: str
    query: dict
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


def head(code, headers, phrase="Scripted"):
    lines = [f"HTTP/1.1 {code} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reply(body=b"", code=200, kind="application/json", headers=None, delay=0.0):
    """Answer as told, after ``delay`` seconds; ``body`` may be bytes, text or what JSON takes."""
    if not isinstance(body, bytes):
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
    fields = {"content-length": str(len(body)), **({"content-type": kind} if kind else {}), **(headers or {})}

    async def behave(seen, writer):
        if delay:
            await asyncio.sleep(delay)
        writer.write(head(code, fields) + body)
        await writer.drain()
        return True

    return behave


def status(number, /, message="scripted failure", headers=None, **more):
    """Answer with a status and an error body as OpenAI and Anthropic write it."""
    return reply({"error": {"message": message, "type": "scripted", **more}}, number, headers=headers)


def hang(seconds=30.0):
    """Read the request and say nothing."""

    async def behave(seen, writer):
        await asyncio.sleep(seconds)
        return False

    return behave


def drip(body=b'{"ok": true}' * 100, pause=0.05):
    """Send headers and then a byte at a time, so that no read ever waits long."""

    async def behave(seen, writer):
        writer.write(head(200, {"content-length": str(len(body)), "content-type": "application/json"}))
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(pause)
        return True

    return behave


def cut(body=b'{"text": "half a rep', missing=100):
    """Promise more than is sent and close the connection."""

    async def behave(seen, writer):
        writer.write(head(200, {"content-length": str(len(body) + missing), "content-type": "application/json"}) + body)
        await writer.drain()
        return False

    return behave


def cut_at_once():
    """Close the connection without a word."""

    async def behave(seen, writer):
        return False

    return behave


def garbage():
    """Answer with what is no HTTP."""

    async def behave(seen, writer):
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()
        return False

    return behave


def huge(size=50_000_000, *, announced=True):
    """Send a body of ``size`` bytes, with its length in the headers or in chunks without end in sight."""

    async def behave(seen, writer):
        kind = {"content-type": "application/json"}
        writer.write(
            head(200, kind | ({"content-length": str(size)} if announced else {"transfer-encoding": "chunked"}))
        )
        sent, part = 0, b" " * 65_536
        try:
            while sent < size:
                writer.write(part if announced else b"10000\r\n" + part + b"\r\n")
                await writer.drain()
                sent += len(part)
        except ConnectionError:
            pass
        return False

    return behave


def bomb(size=50_000_000):
    """Send a small gzip that unpacks to ``size`` bytes."""
    return reply(gzip.compress(b" " * size), headers={"content-encoding": "gzip"})


def redirect(to, code=302):
    return reply(b"", code, kind="", headers={"location": to})


def chat(text="fine", finish="stop", *, usage=(10, 5), refusal=None, model="scripted-1", delay=0.0):
    """Answer as a chat completions endpoint does."""
    message = {"role": "assistant", "content": text} | ({"refusal": refusal} if refusal else {})
    body = {"id": "c1", "object": "chat.completion", "model": model}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return reply(body, delay=delay)


def responses(text="fine", state="completed", reason=None, *, refusal=None, usage=(10, 5)):
    """Answer as OpenAI's responses endpoint does."""
    part = {"type": "refusal", "refusal": refusal} if refusal else {"type": "output_text", "text": text}
    return reply(
        {
            "id": "r1",
            "object": "response",
            "status": state,
            "model": "scripted-1",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [part]},
            ],
            "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
        }
    )


def anthropic(text="fine", stop="end_turn", *, usage=(10, 5)):
    """Answer as Anthropic's messages endpoint does."""
    content = [{"type": "thinking", "thinking": "", "signature": "x"}, {"type": "text", "text": text}]
    return reply(
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "scripted-1",
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
        }
    )


def answering(function):
    """Answer each request with what ``function(seen)`` returns: a behaviour, or what JSON takes."""

    async def behave(seen, writer):
        found = function(seen)
        return await (found if callable(found) else reply(found))(seen, writer)

    return behave


class Server:
    """Serve on a port of 127.0.0.1 from a thread of its own."""

    def __init__(self):
        self.seen = []
        self.most_at_once = 0
        self._busy = 0
        self._scripts = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def script(self, path, *behaviours):
        """Set what happens to the next requests for ``path``, and return its URL."""
        self._scripts[path] = list(behaviours)
        return self.url + path

    def count(self, path):
        return sum(seen.path == path for seen in self.seen)

    def reset(self):
        self.seen.clear()
        self._scripts.clear()
        self.most_at_once = 0

    def _run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            if name:
                headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        parts = urlsplit(target)
        seen = Seen(method, parts.path, parse_qs(parts.query, keep_blank_values=True), headers, body)
        self.seen.append(seen)
        script = self._scripts.get(parts.path) or [status(404, "nothing is scripted here")]
        behave = script.pop(0) if len(script) > 1 else script[0]
        self._busy += 1
        self.most_at_once = max(self.most_at_once, self._busy)
        try:
            return await behave(seen, writer)
        finally:
            self._busy -= 1
