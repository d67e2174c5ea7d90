"""What a model may raise when it runs on other inputs, or with other answers, than it was made for."""

from attnscope.errors import InputError

REFUSALS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    InputError,
)
