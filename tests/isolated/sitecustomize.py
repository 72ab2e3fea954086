"""Gives this process another home directory, so that the tests leave no locks and logs in the user's own.

Python imports this by itself where it is on the path. The locks do not hang on the environment, so that what
the system says of the user is changed here, for the tests and the processes that they start alike.
"""

import os
import pwd

HOME = os.environ.get("AGENTFS_TESTS_HOME")
_real = pwd.getpwuid


def _isolated(user: int) -> pwd.struct_passwd:
    facts = list(_real(user))
    facts[5] = HOME
    return pwd.struct_passwd(facts)


if HOME:
    pwd.getpwuid = _isolated
