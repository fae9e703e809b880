"""The circuit breaker: when it opens, who is let through, and what closes it."""

from factcheck.breaker import BREAKER_LIMIT, BREAKER_REST, Breaker


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def broken():
    clock = Clock()
    breaker = Breaker(clock=clock)
    for number in range(BREAKER_LIMIT):
        assert breaker.refusal() == ""
        breaker.failed(f"trouble {number}.")
    return breaker, clock


def test_it_opens_after_so_many_failures_in_a_row_and_says_which():
    breaker, _ = broken()
    assert breaker.refusal() == f"circuit open after {BREAKER_LIMIT} failures in a row, the last: trouble 4."


def test_a_success_in_between_begins_the_count_anew():
    breaker = Breaker()
    for _ in range(3):
        for _ in range(BREAKER_LIMIT - 1):
            breaker.failed("trouble")
        breaker.succeeded()
    assert breaker.refusal() == ""


def test_after_a_rest_one_is_let_through_and_decides_for_the_others():
    breaker, clock = broken()
    clock.now = BREAKER_REST - 0.1
    assert breaker.refusal()
    clock.now = BREAKER_REST
    assert breaker.refusal() == ""
    assert breaker.refusal()
    breaker.succeeded()
    assert breaker.refusal() == ""


def test_if_that_one_fails_it_rests_again():
    breaker, clock = broken()
    clock.now = BREAKER_REST
    assert breaker.refusal() == ""
    breaker.failed("still.")
    clock.now += BREAKER_REST - 0.1
    assert breaker.refusal().endswith("still.")
