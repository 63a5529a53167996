"""GRPO's advantage for groups with lost attempts, as an estimator of verl: `algorithm.adv_estimator=webgym_grpo`."""

# verl is too large to be installed for the type checker.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import torch
from verl.trainer.ppo.core_algos import register_adv_est

ESTIMATOR = "webgym_grpo"


@register_adv_est(ESTIMATOR)
def masked_grpo_advantage(
    token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Any, config: Any = None, **others: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """GRPO's advantage over the members of a group that have a score. Members whose score is NaN get 0."""
    scores = token_level_rewards.sum(dim=-1)
    advantages = torch.zeros_like(scores)
    is_scaled = config is None or config.get("norm_adv_by_std_in_grpo", True)
    for group in set(index):
        members = [number for number, name in enumerate(index) if name == group and not torch.isnan(scores[number])]
        if len(members) > 1:
            known = scores[members]
            centred = known - known.mean()
            advantages[members] = centred / (known.std() + 1e-6) if is_scaled else centred
    spread = advantages.unsqueeze(-1) * response_mask
    return spread, spread
