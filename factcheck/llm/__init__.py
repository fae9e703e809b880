"""Model calls: settings, client, structured replies, budget and prices."""

from factcheck.llm.budget import Budget, BudgetExceededError, StageUsage
from factcheck.llm.client import Completion, ModelClient
from factcheck.llm.dialects import Message
from factcheck.llm.replies import ModelReplyError
from factcheck.llm.settings import ModelRole, ModelSettings, roles_differ

__all__ = [
    "Budget",
    "BudgetExceededError",
    "Completion",
    "Message",
    "ModelClient",
    "ModelReplyError",
    "ModelRole",
    "ModelSettings",
    "StageUsage",
    "roles_differ",
]
