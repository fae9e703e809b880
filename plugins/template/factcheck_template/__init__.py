"""The hooks of the plugin, and nothing else: this module is imported at every start of factcheck."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_retrievers(register: Register) -> None:
    """Register the retriever by name; its module is imported when a run uses it."""
    register("template", "factcheck_template.retriever:NotesRetriever")
