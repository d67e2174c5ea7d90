"""The terminal explorer: the model stays loaded, and each key asks it a question.

`state` is what is looked at, `questions` what has to be known to show it, `source` who answers them (the
session); `grid`, `matrix`, `sentence` and `scatter` draw what has a cursor, `showing` and `views` what each
pane shows, `panes`, `basis` and `app` put that on the screen. Nothing is computed here about attention. The
only door to Textual.
"""
