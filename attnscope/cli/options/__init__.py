"""Every option once, with the help text that all commands share, and the groups that commands take whole.

A group is the session's own request with an option for every field, so that it is checked there.
"""
