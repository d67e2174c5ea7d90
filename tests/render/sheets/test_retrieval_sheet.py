"""What is said of heads that fetch: named and confirmed, named alone, none, or a model that cannot answer."""

import cases_retrieval as made


def test_the_head_of_equal_weight_that_does_not_copy_stands_beside_the_named_one() -> None:
    assert made.retrieval().alike == ((0, 1),)
    assert made.retrieval().named == ((1, 2),)


def test_too_few_answers_name_no_head() -> None:
    assert made.retrieval(named=False).enough == 7  # a head of six that looks there in each: 6 / 2^7 < .05
