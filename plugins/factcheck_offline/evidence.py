"""Register the offline judge."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_judges(register: Register) -> None:
    """Register the judge ``evidence``."""
    register("evidence", "factcheck_offline.judge:EvidenceJudge", needs=("pint", "Stemmer"))
