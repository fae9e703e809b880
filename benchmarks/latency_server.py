"""A model server of fixed latency for benchmarks: it judges each claim from the first passage that it is shown.

usage: python benchmarks/latency_server.py [--latency SECONDS]

Prints its address, then serves until its standard input closes. For a line ``look`` it prints how many calls it has answered,
how many were inside at most and how many differed; for a line ``counts`` it does so and begins anew. It speaks enough of the
chat completions API for one client, and is not a test of conformance.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys

PASSAGE = re.compile(r"<text-\w+>(.{20,160}?)(?=[.;,]? )")


class Counts:
    """Count calls, how many are inside, and the distinct bodies among them."""

    def __init__(self) -> None:
        self.answered = self.inside = self.most = 0
        self.bodies: set[bytes] = set()


def judgement(prompt: str) -> str:
    """Return the reply to a judge's prompt: supported, with a quote from the first passage."""
    found = PASSAGE.search(prompt)
    if found is None:
        return json.dumps({"stances": [], "rationale": "No passage speaks of it.", "label": "not_enough_evidence"})
    stance = {"passage": "p1", "quote": found[1].strip(), "stance": "supports"}
    return json.dumps({"stances": [stance], "rationale": "The first passage says so.", "label": "supported"})


def completion(body: bytes) -> bytes:
    """Return the body of a chat completion."""
    prompt = json.loads(body)["messages"][-1]["content"]
    text = judgement(prompt)
    reply = {
        "model": "fixed-latency",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4},
    }
    return json.dumps(reply).encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, latency: float, counts: Counts) -> None:
    """Answer the requests of one connection, each ``latency`` seconds after it has come."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1]) if length else 0)
            due = loop.time() + latency
            counts.inside += 1
            counts.most = max(counts.most, counts.inside)
            counts.bodies.add(hashlib.sha256(body).digest())
            reply = completion(body)
            await asyncio.sleep(max(0.0, due - loop.time()))
            counts.inside -= 1
            counts.answered += 1
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(reply) + reply
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(latency: float) -> None:
    """Serve until standard input closes."""
    counts = Counts()
    server = await asyncio.start_server(
        lambda reader, writer: serve(reader, writer, latency, counts), "127.0.0.1", 0, limit=1 << 20
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        found = {"answered": counts.answered, "most": counts.most, "distinct": len(counts.bodies)}
        print(json.dumps(found), flush=True)
        if line.strip() == "counts":
            counts.answered, counts.most, counts.bodies = 0, 0, set()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.2)
    asyncio.run(main(parser.parse_args().latency))
