"""Running agents: `runner` executes runs, `recorder` writes their events, `dispatch` chooses where they start."""
