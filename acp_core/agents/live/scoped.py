"""The policy for turns whose protocol says beforehand what they may do.

What was said is read anew at each request, so that an answer needs nobody who watches the turn.
"""

from __future__ import annotations

from pathlib import Path

from acp_core.agents.live import policy
from acp_core.agents.live.binding import in_force
from acp_core.agents.live.gate import Judge, Judged
from acp_core.agents.live.requests import PermissionRequest
from acp_core.agents.live.state import Files, Order
from acp_core.agents.place import Place
from acp_core.agents.tool_servers import NAME
from acp_core.model.errors import AcpError
from acp_core.person.permissions import Verdict


def judge_of(order: Order) -> Judge:
    """The policy for the turns of a participant."""
    files = Files(Place(Path(order.place)))

    def judge(request: PermissionRequest) -> Judged:
        scope = files.load_scope()
        if scope is None:
            return Judged(policy.Decision(Verdict.ASK, "no policy applies here"))
        within = policy.Scope(
            folder=order.folder,
            participant=order.participant,
            documents=scope.documents,
            drafts=str(Place(Path(order.place)).drafts),
            folders=scope.folders,
            kept=scope.kept,
            confined=scope.confined,
            server=NAME if scope.tools else "",
            tools=frozenset(scope.tools),
        )
        try:
            allowed = in_force(scope.permissions)
            return Judged(policy.decide(request, within, allowed), scope.what)
        except (AcpError, OSError) as error:
            why = f"the policy cannot decide: {error}"
            return Judged(policy.Decision(Verdict.ASK, why), scope.what)

    return judge
