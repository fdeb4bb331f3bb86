"""For tests of others: the pytest plugin, `assert_bits_equal`, Hypothesis strategies, profiles. PYTEST_DONT_REWRITE"""
