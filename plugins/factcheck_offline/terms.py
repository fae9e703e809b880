"""Register the offline query writer."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_query_writers(register: Register) -> None:
    """Register the query writer ``terms``."""
    register("terms", "factcheck.queries:TermsQueryWriter")
