"""Give this process another home directory, so that the tests leave no locks and logs in the user's own.

Python imports this module at its start if it is on the path. The place of the locks does not depend on the
environment, so this changes what the system says about the user, for the tests and their processes.
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
