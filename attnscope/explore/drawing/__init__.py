"""What answers look like: rich renderables for a given number of cells, with the cursor in them.

Wherever another command shows the same, its own rendering is used; here stands what has a cursor.
"""
