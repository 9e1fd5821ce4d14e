"""The JavaScript runtime of a page's charts. It needs no extension, so that the build can make it first."""

from __future__ import annotations

import functools
from importlib import resources

from leadline.errors import UsageError
from leadline.report.still_charts import undrawable


def template_text(name: str) -> str:
    """A file of the templates."""
    return (resources.files("leadline.report") / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def vega_runtime() -> str:
    """Vega, Vega-Lite and vega-embed as one script without any import.

    The build takes it out of vl-convert and keeps it beside the templates (tools/vega_runtime.py).
    A page needs no vl-convert.
    """
    templates = resources.files("leadline.report") / "templates"
    kept = next((one for one in templates.iterdir() if one.name.startswith("vega-")), None)
    return made_runtime() if kept is None else kept.read_text(encoding="utf-8")


def made_runtime() -> str:
    """The same, put together anew. Raises UsageError where the engine is missing or cannot start."""
    if lacking := undrawable():
        why, remedy = lacking
        raise UsageError(f"the page's chart runtime cannot be made: {why}", remedy)
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Whoever passes a page on passes these packages on, whose terms have their notices go with them.
    text = f"/*!\n{template_text('notices.txt')}*/\n{bundle}"
    # An HTML parser ends the element at the first of these, and normalises line ends before hashing.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "")
