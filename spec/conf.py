"""Configuration of the site: Sphinx reads the pages that `python -m quantspec_conformance.site` puts together."""

import quantspec

project = "quantspec"
author = "the quantspec authors"
project_copyright = "the quantspec authors, Apache-2.0"
version = release = quantspec.__version__

extensions = ["myst_parser", "quantspec_conformance.site.extension"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
root_doc = "index"
nitpicky = True
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = f"quantspec {release}"
html_static_path = ["_static"]
html_css_files = ["quantspec.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page opened from disk may not fetch its neighbours
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5a8a", "color-brand-content": "#0b5a8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f2", "color-brand-content": "#7cc4f2"},
}
pygments_style = "tango"
pygments_dark_style = "native"
