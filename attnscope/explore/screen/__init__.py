"""The screen: the board of panes, and what the keys and the mouse do, a module for each kind of them."""
