"""Settings of the documentation site; ``make docs`` builds it into build/docs, from this checkout and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import surefill

project = "surefill"
author = "the surefill authors"
version = release = surefill.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.napoleon",
    "sphinx.ext.autodoc",
    "public_names",
    "plain_docstrings",
    "command_reference",
]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!surefill).*")
]  # the standard library, NumPy and others: no inventory, no network

smartquotes_action = "D"  # dashes; quotation marks stay as they are typed
myst_heading_anchors = 3
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # Methods of our own mixins are listed, those of scikit-learn and of built-in types are not.
    "inherited-members": "BaseEstimator,TransformerMixin,_SetOutputMixin,_MetadataRequester,BaseException,Enum,"
    "tuple,dict,str,object",
}
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"
add_module_names = False

html_theme = "furo"
html_title = f"surefill {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f6f78", "color-brand-content": "#1f6f78"},
    "dark_css_variables": {"color-brand-primary": "#6fc3cc", "color-brand-content": "#6fc3cc"},
}
pygments_style, pygments_dark_style = "friendly", "native"
