"""What other programs read: JSON, CSV and npz, full precision, the verdict and the provenance in each.

Numbers that are no numbers are null in JSON and `nan` elsewhere. The same result gives the same bytes.
The dense weights of an overview stand in its npz only.
"""

from attnscope.render import (
    file_comparison,
    file_media,
    file_outline,
    file_prediction,
    file_projection,
    file_report,
    file_terms,
    file_view,
)
from attnscope.render.file_csv import as_csv
from attnscope.render.file_json import as_json
from attnscope.render.file_npz import as_npz
from attnscope.render.worked import files as worked_files

# modules whose import registers their result with `document`, `rows` and `arrays_of`
REGISTERED = (
    file_comparison,
    file_outline,
    file_media,
    file_prediction,
    file_projection,
    file_report,
    file_terms,
    file_view,
    worked_files,
)

__all__ = ["as_csv", "as_json", "as_npz"]
