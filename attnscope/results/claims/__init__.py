"""Claims about heads beside their controls: rankings, effects of ablation, many prompts, attributions."""
