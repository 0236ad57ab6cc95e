-- The condition in SQL that run `r` is of agent `w`, for rows in the order of `agent`, `round` and `id`. With "=" the planner
-- may take this order from an index without the agent, and so read all waiting runs of other agents.
r.agent >= w.agent and r.agent <= w.agent
