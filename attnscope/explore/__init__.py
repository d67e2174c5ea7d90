"""The terminal explorer: the model stays loaded, and each key asks it a question.

`state` holds what is looked at, `questions` what a state needs answered, `source` answers through the
session; `grid`, `matrix`, `sentence` and `scatter` draw parts with a cursor, `showing` and `views` fill the
panes, `panes`, `basis` and `app` are the Textual widgets. It computes nothing about attention itself.
"""
