"""`Policy.run_paths` names paths of the machine that runs commands, so it is not sent."""

from agentfs import Policy
from agentfs.remote.narrow import narrowed


def test_the_paths_of_the_far_side_hold():
    server = Policy(run="staged", run_paths=["/data"])
    assert narrowed(Policy(run="staged", run_paths=["/home/me/private"]), server).run_paths == ("/data",)
    assert narrowed(Policy(run="staged", run_paths=["/x"]), Policy(run="staged")).run_paths == ()
