"""Real servers for the tests, on free ports of the loopback interface.

A test asks for a fixture of `tests.servers.plugin`. What must be installed is installed with apt where that is
allowed; what cannot be had is a skip that says its name and what to do, or a failure if `REDRIVE_REQUIRE_SERVERS` is
set. `REDRIVE_TEST_REDIS`, `REDRIVE_TEST_POSTGRES` and `REDRIVE_TEST_KAFKA` name servers to use in place of our own
wherever a test does not strike the server; on the second, tests create databases and drop them, on the third they leave
topics behind.
"""
