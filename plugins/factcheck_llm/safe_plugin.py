"""Register the judge ``safe``."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_judges(register: Register) -> None:
    """Register the judge that searches step by step."""
    register("safe", "factcheck_llm.safe:SafeJudge")
