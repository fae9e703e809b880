import functools
import ipaddress
import runpy
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import TransientError
from factcheck.net import AddressRefusedError, Net, NetSettings, PermanentError, guard_url
from factcheck.net.guard import is_public, parse_url

MISBEHAVING = runpy.run_path(str(Path(__file__).with_name("misbehaving.py")))
Server, reply, redirect = MISBEHAVING["Server"], MISBEHAVING["reply"], MISBEHAVING["redirect"]

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e", "64:ff9b::808:808"]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2001:0:1::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "4000::1",
    "localhost",
    "",
]
SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def server():
    with Server() as running:
        yield running


def request(net, *args, **kwargs):
    return anyio.run(functools.partial(net.request, *args, **kwargs))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address):
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_do_not(address):
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_no_form_of_ipv6_opens_a_private_ipv4_address(address):
    number = int(address)
    assert not is_public(f"::ffff:{address}")
    assert not is_public(f"::{address}")
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))))
    assert is_public(str(ipaddress.IPv6Address((0x64FF9B << 96) | number))) == is_public(str(address))
    if address.is_private or address.is_multicast:
        assert not is_public(str(address))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/x",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//example.org/x",
        "example.org",
        "",
        "http://",
        "http:///path",
        "http://[::1",
        "http://exa mple.org/",
        "http://1.1.1.1:0/",
        "http://1.1.1.1:65536/",
        "http://1.1.1.1:x/",
        "http://xn--/",
        "http://evil.example\\.nice.org.uk/",
        f"https://user:{SECRET}@example.org/",
        f"data:{SECRET}",
    ],
)
@pytest.mark.parametrize("allow_private", [True, False])
def test_urls_of_another_form_are_refused_without_repeating_them(url, allow_private):
    with pytest.raises(AddressRefusedError) as caught:
        anyio.run(functools.partial(guard_url, url, allow_private=allow_private))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ],
)
def test_every_spelling_of_this_machine_is_refused(host):
    with pytest.raises((AddressRefusedError, TransientError)) as caught:
        anyio.run(guard_url, f"http://{host}/")
    if host in ("127.0.0.1", "127.1", "2130706433", "localhost", "[::1]"):
        assert isinstance(caught.value, AddressRefusedError)


def test_a_public_url_passes_and_a_private_one_where_that_is_allowed():
    anyio.run(guard_url, "https://93.184.216.34/x?y=z")
    anyio.run(functools.partial(guard_url, "http://10.1.2.3:8080/v1", allow_private=True))


def test_a_host_without_an_address_is_an_error():
    with pytest.raises(TransientError, match=r"nowhere\.invalid cannot be resolved"):
        anyio.run(guard_url, "http://nowhere.invalid/")


def test_parsing_gives_the_host_in_ascii():
    assert parse_url("https://Bücher.example/x").raw_host == b"xn--bcher-kva.example"


def test_a_net_refuses_this_machine_unless_it_is_told_otherwise(server):
    url = server.script("/x", reply({"ok": True}))
    with pytest.raises(AddressRefusedError, match="not public"):
        request(Net(), "GET", url)
    assert not server.seen
    assert request(Net(NetSettings(allow_private=True)), "GET", url).json() == {"ok": True}


def test_a_name_that_changes_its_address_between_check_and_connection_gains_nothing(server):
    server.script("/x", reply({"ok": True}))
    answers = [["93.184.216.34"], ["127.0.0.1"]]

    async def rebinding(host, port):
        return answers.pop(0)

    async def check_then_fetch():
        # What a caller does who checks first: the first answer of the name server is a public address.
        assert all(is_public(address) for address in await rebinding("evil.test", server.port))
        await Net(resolver=rebinding).request("GET", f"http://evil.test:{server.port}/x")

    with pytest.raises(AddressRefusedError):
        anyio.run(check_then_fetch)
    assert answers == []
    assert not server.seen


def test_one_private_address_among_several_is_enough_to_refuse(server):
    async def mixed(host, port):
        return ["93.184.216.34", "127.0.0.1"]

    with pytest.raises(AddressRefusedError, match=r"127\.0\.0\.1"):
        request(Net(resolver=mixed), "GET", f"http://mixed.test:{server.port}/x")
    assert not server.seen


def test_the_connection_goes_to_the_address_that_was_examined_under_the_name_that_was_asked(server):
    server.script("/x", reply({"ok": True}))
    asked = []

    async def resolver(host, port):
        asked.append(host)
        return ["127.0.0.1"]

    net = Net(NetSettings(allow_private=True), resolver=resolver)
    assert request(net, "GET", f"http://model.test:{server.port}/x").url == f"http://model.test:{server.port}/x"
    assert asked == ["model.test"]
    assert server.seen[0].headers["host"] == f"model.test:{server.port}"


def test_the_next_address_is_tried_when_one_does_not_answer(server):
    server.script("/x", reply({"ok": True}))

    async def resolver(host, port):
        return ["127.0.0.2", "127.0.0.1"]  # the server listens on the second only

    net = Net(NetSettings(allow_private=True), resolver=resolver)
    assert request(net, "GET", f"http://two.test:{server.port}/x").attempts == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_to_this_machine_are_refused_even_from_a_trusted_server(server, status):
    with Server() as inner:
        inner.script("/admin", reply({"secret": True}))
        url = server.script("/x", redirect(f"{inner.url}/admin", status))
        with pytest.raises(AddressRefusedError, match="not public"):
            request(Net(NetSettings(allow_private=True)), "GET", url)
        assert not inner.seen
    assert len(server.seen) == 1


@pytest.mark.parametrize("to", ["file:///etc/passwd", "http://user:pw@93.184.216.34/", "gopher://x/", "http://[::1/"])
def test_redirects_to_another_kind_of_url_are_refused(server, to):
    url = server.script("/x", redirect(to))
    with pytest.raises(PermanentError, match="redirects") as caught:
        request(Net(NetSettings(allow_private=True)), "GET", url)
    assert "pw" not in str(caught.value)
    assert len(server.seen) == 1


def test_redirects_at_home_are_followed_and_a_loop_ends(server):
    server.script("/a", redirect("/b?page=2"))
    server.script("/b", reply({"ok": True}))
    net = Net(NetSettings(allow_private=True))
    assert request(net, "GET", f"{server.url}/a").url == f"{server.url}/b"
    assert server.seen[1].query == {"page": ["2"]}
    server.script("/loop", redirect("/loop"))
    with pytest.raises(PermanentError, match="more than 5 times"):
        request(net, "GET", f"{server.url}/loop")
    assert server.count("/loop") == 6
