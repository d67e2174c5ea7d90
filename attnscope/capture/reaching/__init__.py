"""Whether what an attention answers acts, and on which rows: the model runs again with other answers.

    clean run -> the answer of every row another -> each by a factor of its own -> of half of the rows

Everything is asked as *changed or not changed*, never as a gradient, so that code in NumPy, whole numbers or
in place answers too. Every attention module's result, or its block's, is put back to the clean one, so that
one run tries all layers.
"""
