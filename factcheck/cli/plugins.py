"""The command ``factcheck plugins``: what is installed, and what is wrong with it.

JSON, whose keys are only ever added to:

``list``    {"schema": "factcheck.plugins/1", "plugins": [{name, dist, version, status, first_party, api, provides,
            hooks, needs, missing, error}]}
``doctor``  {"schema": "factcheck.plugins.doctor/1", "plugin_api": [major, minor], "plugin_api_floor": [major, minor],
            "plugins": [the same keys, traceback, install, components]}
            install: [a pip command for each missing module that an extra covers]
            components: null without NAME, else [{role, name, factory, needs, missing, settings, error}], where settings
            is the JSON schema of the component's settings, null if it takes none or cannot be imported
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factcheck.plugins import PluginRecord, Plugins

ROLE_NAMES = ("decomposer", "query_writer", "retriever", "judge", "checker", "primitive")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options; without an action, ``list`` is meant."""
    _add_options(parser, fallback=True)
    parser.set_defaults(action="list", name=None, role=None)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=False)
    listing = actions.add_parser("list", help="name, version, status and components of each plugin (default)")
    _add_options(listing, fallback=False)
    listing.add_argument("--role", choices=ROLE_NAMES, help="only plugins that offer this role, or did not load")
    doctor = actions.add_parser("doctor", help="say what is wrong; exit status 1 if a plugin is broken")
    doctor.add_argument(
        "name", nargs="?", metavar="NAME", help="one plugin, with its settings (imports its components)"
    )
    _add_options(doctor, fallback=False)


def run(args: argparse.Namespace) -> int:
    """Run the action and return the exit status."""
    import contextlib
    import sys

    from factcheck.plugins import Plugins

    # A plugin that prints while it is imported must not spoil what is printed here.
    with contextlib.redirect_stdout(sys.stderr):
        plugins = Plugins(blocked=args.no_plugin, strict=False)
        if args.action == "doctor":
            entries, healthy = _examine(plugins, args.name)
        else:
            entries, healthy = [_listed(record) for record in _of_role(plugins.records, args.role)], True
    if args.format == "json":
        _print_json(entries, args.action)
    elif args.action == "doctor":
        _print_diagnosis(entries)
    else:
        _print_table(entries)
    return 0 if healthy else 1


def _add_options(parser: argparse.ArgumentParser, *, fallback: bool) -> None:
    # The options stand before or after the action; suppressed defaults keep the later parser from undoing the earlier.
    absent = argparse.SUPPRESS
    parser.add_argument(
        "--format", choices=("text", "json"), default="text" if fallback else absent, help="default: text"
    )
    parser.add_argument(
        "--no-plugin",
        action="append",
        metavar="NAME",
        default=[] if fallback else absent,
        help="do not load this plugin (repeatable)",
    )


def _of_role(records: Sequence[PluginRecord], role: str | None) -> list[PluginRecord]:
    return [r for r in records if role is None or f"{role}s" in r.provides or r.status != "loaded"]


def _listed(record: PluginRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude={"traceback"})


def _examine(plugins: Plugins, name: str | None) -> tuple[list[dict[str, Any]], bool]:
    from factcheck.errors import UnknownNameError
    from factcheck.plugins import BROKEN

    chosen = [record for record in plugins.records if name in (None, record.name)]
    if not chosen and name is not None:
        raise UnknownNameError("plugin", name, {record.name for record in plugins.records})
    entries = []
    for record in chosen:
        entry: dict[str, Any] = record.model_dump(mode="json")
        entry["install"] = _install_lines(record)
        entry["components"] = _components(plugins, record) if name is not None else None
        entries.append(entry)
    problems = [item["error"] for entry in entries for item in entry["components"] or () if not item["missing"]]
    return entries, not any(problems) and not any(record.status in BROKEN for record in chosen)


def _install_lines(record: PluginRecord) -> list[str]:
    from factcheck.components import install_line

    lines = (install_line(module, record.dist) for module in record.missing)
    return list(dict.fromkeys(line for line in lines if line))


def _components(plugins: Plugins, record: PluginRecord) -> list[dict[str, Any]]:
    from factcheck.components import missing_modules, resolve_factory, settings_model
    from factcheck.errors import FactcheckError

    found = []
    for item in plugins.registrations(record.name) if record.status == "loaded" else ():
        missing = missing_modules(item.needs)
        settings, error = None, ""
        if missing:
            error = f"not examined: {', '.join(missing)} missing"
        else:
            try:
                model = settings_model(resolve_factory(item, record.dist), item)
                settings = model.model_json_schema() if model is not None else None
            except FactcheckError as exc:
                error = str(exc)
        factory = item.factory if isinstance(item.factory, str) else getattr(item.factory, "__qualname__", "a callable")
        found.append(
            {
                "role": item.role,
                "name": item.name,
                "factory": factory,
                "needs": list(item.needs),
                "missing": missing,
                "settings": settings,
                "error": error,
            }
        )
    return found


def _print_json(entries: list[dict[str, Any]], action: str) -> None:
    import json

    from factcheck.registry import PLUGIN_API, PLUGIN_API_FLOOR

    if action == "doctor":
        head: dict[str, Any] = {
            "schema": "factcheck.plugins.doctor/1",
            "plugin_api": PLUGIN_API,
            "plugin_api_floor": PLUGIN_API_FLOOR,
        }
    else:
        head = {"schema": "factcheck.plugins/1"}
    print(json.dumps({**head, "plugins": entries}, indent=2, ensure_ascii=True))


def _print_table(entries: list[dict[str, Any]]) -> None:
    if not entries:
        print("No plugins.")
        return
    rows = [("NAME", "VERSION", "STATUS", "PROVIDES")]
    for entry in entries:
        offered = "; ".join(f"{role}: {', '.join(names)}" for role, names in entry["provides"].items())
        if entry["status"] != "loaded":
            offered = entry["error"]
        elif entry["missing"]:
            offered += f" (missing: {', '.join(entry['missing'])})"
        rows.append((entry["name"], entry["version"], entry["status"], offered))
    widths = [max(len(_plain(row[i])) for row in rows) for i in range(3)]
    for row in rows:
        cells = [_plain(row[i]).ljust(widths[i]) for i in range(3)]
        print("  ".join([*cells, _plain(row[3])]).rstrip())


def _print_diagnosis(entries: list[dict[str, Any]]) -> None:
    import json

    from factcheck.registry import PLUGIN_API, PLUGIN_API_FLOOR

    served = ".".join(map(str, PLUGIN_API))
    floor = ".".join(map(str, PLUGIN_API_FLOOR))
    print(f"Plugin API served: {floor} to {served}.")
    for entry in entries:
        source = f" ({entry['dist']} {entry['version']})" if entry["dist"] else ""
        print(f"\n{_plain(entry['name'])}{_plain(source)}: {entry['status']}")
        if entry["error"]:
            print(f"  reason: {_plain(entry['error'])}")
        if entry["api"]:
            print(f"  written for plugin API: {'.'.join(map(str, entry['api']))}")
        for role, names in entry["provides"].items():
            print(f"  {role}: {_plain(', '.join(names))}")
        for module in entry["missing"]:
            print(f"  missing: {_plain(module)}")
        for line in entry["install"]:
            print(f"  install: {_plain(line)}")
        for item in entry["components"] or ():
            print(f"  {item['role']} {_plain(item['name'])}: {_plain(str(item['factory']))}")
            if item["error"]:
                print(f"    error: {_plain(item['error'])}")
            elif item["settings"] is None:
                print("    takes no settings")
            else:
                schema = json.dumps(item["settings"], indent=2, ensure_ascii=True)
                print("    settings: " + schema.replace("\n", "\n    "))
        if entry["traceback"]:
            print("  traceback:\n    " + "\n    ".join(_plain(line) for line in entry["traceback"].splitlines()))


def _plain(text: str) -> str:
    """Replace what a terminal would act on: the text may come from a plugin."""
    return "".join(char if char.isprintable() else "�" for char in text)
