"""What each measure computes, as a formula: a is the weight of query q on key k, mean the mean over queries.

A measure by norm has the same formula, of a |f(x_k)| over its sum in place of a.
"""

FORMULAS = {
    "entropy": "mean of -sum_k a ln a",
    "confidence": "mean of max_k a",
    "distance": "mean of sum_k a |k - q|",
    "self": "mean of a at k = q",
    "previous": "mean of a at k = q - 1, over q that may look there",
    "next": "mean of a at k = q + 1, over q that may look there",
    "first": "mean of a at k = 0, over q that may look there",
    "sink": "mean of a at k = 0, over q > 0 that may look there",
    "special-tokens": "mean of sum_k a, over special k, of q that may look at one",
    "punctuation": "mean of sum_k a, over k that are punctuation, of q that may look at one",
    "same": "mean of sum_k a, over k other than q with the token of q, of q that may look at one",
    "evenness": "mean of (-sum_k a ln a) / ln(keys that q may see)",
    "fixed": "largest share of queries with one and the same (argmax_k a) - q",
    "offset": "the most frequent (argmax_k a) - q",
    "moved": "mean of sum_k a |f(x_k)|",
    "near": "Spearman's rho of 1 - cos(q, k) and q.k after scaling, over all pairs",
    "pattern": "(x - x of even weights) / (1 - x of even weights), x the largest mean of a column, the "
    "largest mean at one k - q from -2 to 2, and the mean of sum_k a over k of the text of q",
    "induction": "mean of a at k = q - n + 1, over the second half of n random tokens read twice",
    "duplicate": "mean of a at k = q - n, over the second half of n random tokens read twice",
    "previous-random": "mean of a at k = q - 1, over the second half of n random tokens read twice",
    "copying": "sum_i Re(l_i) / sum_i |l_i|, l the eigenvalues of W_E W_V W_O W_U",
    "importance": "|sum_q o_q . dL/do_q|, L = -ln p of the answer, o the head's output",
    "attention-gradient": "sum_q sum_k a dy/da, y = ln p of the answer",
    "attention-gradient-positive": "sum_q sum_k max(0, a dy/da), y = ln p of the answer",
    "logit": "sum_q o_q . dz/do_q along the straight way, z the answer's logit less the mean of all",
}
NORM = "-norm"


def formula(measure: str) -> str:
    """That of the measure of this name; `KeyError` where there is none."""
    plain = measure.removesuffix(NORM)
    if plain == measure:
        return FORMULAS[measure]
    return f"{FORMULAS[plain]}; a |f(x_k)| / sum_k a |f(x_k)| in place of a"
