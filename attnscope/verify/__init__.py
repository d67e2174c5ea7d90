"""Certificates: compares recomputed attention with the model's, and tests that mistakes would be seen.

The recomputed weights are compared with the weights of the model's own kernel, the recomputed output with
the kernel's output. Agreement alone proves nothing where a mistake would change less than the tolerance, so
every fault that could apply to the call is inserted on purpose; if one of them would pass, the verdict is
`inconclusive`. Nothing is compared with something derived from it.

    certify_heads(call)     every captured head of a layer, computed together, each judged by itself
    certify(call, head)     one of them
    FAULTS                  what is put in on purpose
    apart, adding           what rounding alone may come to
"""

from attnscope.verify.certificate import FAULTS, adding, apart, applicable, certify, certify_heads, conclusion

__all__ = ["FAULTS", "adding", "apart", "applicable", "certify", "certify_heads", "conclusion"]
