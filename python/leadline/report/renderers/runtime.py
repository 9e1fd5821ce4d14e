"""The JavaScript runtime of a page's charts. It needs no extension, so that the build can make it first."""

from __future__ import annotations

import functools
from importlib import resources
from importlib.metadata import version

from leadline.errors import UsageError
from leadline.report.still_charts import undrawable


def template_text(name: str) -> str:
    """A file of the templates."""
    return (resources.files("leadline.report") / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def vega_runtime() -> str:
    """Vega, Vega-Lite and vega-embed as one script without any import, from the installed vl-convert.

    Putting it together takes two seconds: the build keeps it beside the templates (tools/vega_runtime.py).
    """
    kept = resources.files("leadline.report") / "templates" / f"vega-{version('vl-convert-python')}.js"
    return kept.read_text(encoding="utf-8") if kept.is_file() else made_runtime()


def made_runtime() -> str:
    """The same, put together anew. Raises UsageError where the engine cannot start."""
    if why := undrawable():
        raise UsageError(
            f"the page's chart runtime cannot be made: {why}", "Raise the limit: ulimit -v unlimited"
        )
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Whoever passes a page on passes these packages on, whose terms have their notices go with them.
    text = f"/*!\n{template_text('notices.txt')}*/\n{bundle}"
    # An HTML parser ends the element at the first of these, and normalises line ends before hashing.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "")
