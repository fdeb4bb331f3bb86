"""From a failure to its cause: the failure block, replay, the smallest counterexample, one element by steps, two runs."""
