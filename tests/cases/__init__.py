"""Facts as tests: upstream's expected numbers, public fault reports, and tables of formats.

`burn_golden.json`, `bug_cases.json` and `formats.json` are the facts; `facts` reads them and counts what is tested;
`ledger` lists what is left out, where upstream differs and which of several right answers the spec takes.
"""
