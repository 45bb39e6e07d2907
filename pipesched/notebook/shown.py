"""Once this is imported, problems, orders and timelines show themselves in notebooks."""

from pipesched.html_of import html_of
from pipesched.notebook.order_html import schedule_html
from pipesched.notebook.problem_html import problem_html
from pipesched.notebook.timeline_html import timeline_html

for write in (problem_html, schedule_html, timeline_html):
    html_of.register(write)
