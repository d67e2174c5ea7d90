"""From an Axes to a file: sheets, stages, pages."""
