"""Which results have no picture, and why not in one line."""

from attnscope.results import Outline, Prediction, Verification

NO_PICTURE: dict[type, str] = {
    Prediction: "a prediction has no picture: it is words and numbers",
    Verification: "a verification has no picture: it is a table of certificates",
    Outline: "an outline of a model has no picture: it is a table of layers",
}
