"""The page for people: what the API answers, as HTML made by the service, with few lines of script.

Fragments are rendered from the API's own answers, so that the page cannot say anything else, and every value is escaped
in one place, by the templates. htmx fetches them; uPlot draws what changes over time.
"""

from surefill.service.page.routes import router

__all__ = ["router"]
