"""Register the judge ``panel``."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_judges(register: Register) -> None:
    """Register the judge that asks several others."""
    register("panel", "factcheck_llm.panel:PanelJudge")
