"""Options that commands share and only the command line has, and the groups that commands take whole.

The options of a model and of what it reads stand beside the fields of the session's own requests.
"""
